// The only place that knows the WebSocket and the JSON on it. It connects, comes back when the connection is lost, and hands
// on checked frames; what they mean is decided elsewhere.
import { readFrame } from "./shapes.ts";
import type { ClientFrame, Phase, ServerFrame } from "./types.ts";

const BACKOFF_MIN = 500;
const BACKOFF_MAX = 10_000;
const PING_EVERY = 20_000;
const SILENCE_MAX = 8000; // after a ping; then the connection is dead, whatever the browser says
const OPENING_MAX = 10_000;
const UNAUTHORIZED = 4401;

export interface SocketEvents {
  hello(): ClientFrame;
  onPhase(phase: Phase): void;
  onFrame(frame: ServerFrame): void;
}

/** Half of the pause is fixed, half is chance: a thousand panels do not come back at the same moment. */
export function backoff(attempt: number, chance: number): number {
  const whole = Math.min(BACKOFF_MAX, BACKOFF_MIN * 2 ** attempt);
  return whole / 2 + (whole / 2) * chance;
}

export class Socket {
  private socket: WebSocket | undefined;
  private attempt = 0;
  private stopped = true;
  private stopping = false;
  private retryTimer: ReturnType<typeof setTimeout> | undefined;
  private silenceTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly events: SocketEvents) {
    setInterval(() => this.ping(), PING_EVERY);
    addEventListener("online", () => this.wake());
    addEventListener("pageshow", () => this.wake());
    addEventListener("offline", () => this.dropIfDead());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.wake();
    });
  }

  start(): void {
    this.stopped = false;
    this.attempt = 0;
    this.reconnectNow();
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.retryTimer);
    this.drop();
  }

  /** False if there is no connection; then the frame is not sent. */
  send(frame: ClientFrame): boolean {
    if (this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(frame));
    return true;
  }

  reconnectNow(): void {
    if (this.stopped) return;
    clearTimeout(this.retryTimer);
    this.drop();
    this.open();
  }

  ping(): void {
    if (!this.send({ op: "ping" })) return;
    clearTimeout(this.silenceTimer);
    this.silenceTimer = setTimeout(() => this.lost(), SILENCE_MAX);
  }

  private wake(): void {
    if (this.stopped) return;
    if (this.socket?.readyState === WebSocket.OPEN) this.ping();
    else if (this.socket?.readyState !== WebSocket.CONNECTING) this.reconnectNow();
  }

  /** Loopback works without a network: ask before giving up the connection. */
  private dropIfDead(): void {
    this.ping();
  }

  private open(): void {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}/v1/ws`);
    this.socket = socket;
    this.silenceTimer = setTimeout(() => this.lost(), OPENING_MAX);
    socket.onopen = () => this.send(this.events.hello());
    socket.onmessage = (event: MessageEvent<unknown>) => this.heard(socket, event.data);
    socket.onclose = (event) => {
      if (this.socket === socket) this.lost(event.code);
    };
  }

  private heard(socket: WebSocket, data: unknown): void {
    if (this.socket !== socket || typeof data !== "string") return;
    clearTimeout(this.silenceTimer);
    const frame = this.parse(data);
    if (!frame) return;
    if (frame.op === "welcome") this.attempt = 0;
    if (frame.op === "stopping") this.stopping = true;
    this.events.onFrame(frame);
  }

  private parse(data: string): ServerFrame | undefined {
    try {
      return readFrame(JSON.parse(data));
    } catch {
      return undefined;
    }
  }

  private drop(): void {
    clearTimeout(this.silenceTimer);
    const socket = this.socket;
    this.socket = undefined;
    if (socket) socket.onclose = socket.onmessage = socket.onopen = null;
    socket?.close();
  }

  private lost(code?: number): void {
    this.drop();
    if (code === UNAUTHORIZED) {
      this.stopped = true;
      this.events.onPhase("unauthorized");
      return;
    }
    if (this.stopped) return;
    // A server that said so is expected back; if it is not at the first try, it is away like any other.
    this.events.onPhase(this.stopping ? "stopping" : "offline");
    this.stopping = false;
    this.retryTimer = setTimeout(() => this.reconnectNow(), backoff(this.attempt++, Math.random()));
  }
}
