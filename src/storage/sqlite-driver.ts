// better-sqlite3 in the version that this Node.js can run. Version 12 aborts the process from Node.js 24.19 on, whenever the
// garbage collector finds one of its objects while no code runs; version 13 is made for Node-API 10, which Node.js 20
// does not have and crashes on. Neither loads its native part before the first database is opened.

import Version12 from 'better-sqlite3';
import Version13 from 'better-sqlite3-napi';

const NODE_API_OF_13 = 10;

export const Driver = Number(process.versions.napi) >= NODE_API_OF_13 ? Version13 : Version12;
