import type { WebSocket } from 'ws';

/** Pings without an answer after which a client counts as gone. */
const MOST_MISSED = 2;

/** Pings sockets, and ends those whose clients are gone. Keeps no process alive. */
export class Heartbeat {
  readonly #missed = new Map<WebSocket, number>();
  readonly #timer: NodeJS.Timeout;

  constructor(everyMs: number) {
    this.#timer = setInterval(() => this.#beat(), everyMs);
    this.#timer.unref();
  }

  /** Until the socket closes. */
  watch(socket: WebSocket): void {
    this.#missed.set(socket, 0);
    socket.on('pong', () => this.#missed.set(socket, 0));
    socket.on('close', () => this.#missed.delete(socket));
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #beat(): void {
    for (const [socket, count] of this.#missed) {
      if (count >= MOST_MISSED) socket.terminate();
      else {
        this.#missed.set(socket, count + 1);
        socket.ping();
      }
    }
  }
}
