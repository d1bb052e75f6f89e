// The pool's entry for training decoders.

import { openDecoder } from './decoder.js';
import { trainerTask } from './trainer-task.js';

export default trainerTask(openDecoder);
