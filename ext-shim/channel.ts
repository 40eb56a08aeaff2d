// JSON-RPC 2.0 between the extension and the helper: bytes in, bytes out, one object per line, both directions. It knows nothing
// of processes or of pi. A line ends at byte 0x0A and nowhere else: U+2028 and its kin are legal inside JSON strings.
import { CANCEL, CODE_CANCELLED, CODE_TOO_LARGE, MAX_FRAME, type RefusedData } from "./wire.gen.ts";

const NEWLINE = 0x0a;
const METHOD_NOT_FOUND = -32601;
const INTERNAL_ERROR = -32603;
/** How long a cancelled call waits for its answer before it fails here, in milliseconds. */
const CANCEL_GRACE = 2000;
/** The id of a frame, when it comes first as both sides write it, and whether a method follows. */
const FRAME_HEAD = /^\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d+|"(?:[^"\\]|\\.)*")\s*,\s*("method")?/;

type Id = number | string;

interface Frame {
	id?: Id | null;
	method?: string;
	params?: unknown;
	result?: unknown;
	error?: { code: number; message: string; data?: unknown };
}

/** RpcError is an error answer, in either direction. */
export class RpcError extends Error {
	readonly code: number;
	readonly data: unknown;
	constructor(code: number, message: string, data?: unknown) {
		super(message);
		this.code = code;
		this.data = data;
	}
}

/** NoAnswer is a call that the other side did not answer in time. */
export class NoAnswer extends Error {}

/** Whether the other side was there to fail, rather than gone. */
export function answered(error: unknown): boolean {
	return error instanceof RpcError || error instanceof NoAnswer;
}

/** What a person should read of an error: its message, and under it what can be done. */
export function describe(error: unknown): string {
	const hints = error instanceof RpcError ? (error.data as RefusedData | undefined)?.hints : undefined;
	return [error instanceof Error ? error.message : String(error), ...(hints ?? [])].join("\n");
}

/** Handler answers a call of the other side, or takes a notification; undefined means that there is no such method. */
export type Handler = (method: string, params: unknown, signal: AbortSignal) => Promise<unknown> | undefined;

export interface ChannelOptions {
	/** Writes a frame, newline included. Never throws. */
	send: (frame: string) => void;
	handle: Handler;
	/** The number of calls that wait for an answer went from or to zero. */
	onWaiting: (waiting: boolean) => void;
	/** The other side wrote something that is no frame. The channel is of no more use. */
	onGarbage: (line: string) => void;
}

export interface CallOptions {
	/** Milliseconds until the call fails; none when left out. */
	timeout?: number | undefined;
	/** Tells the other side to give up. The call then still gets its answer, or fails after a moment. */
	signal?: AbortSignal | undefined;
}

interface Waiting {
	resolve: (result: unknown) => void;
	reject: (error: Error) => void;
}

export class Channel {
	private readonly options: ChannelOptions;
	private nextId = 1;
	private readonly waiting = new Map<Id, Waiting>();
	private readonly serving = new Map<Id, AbortController>();
	private chunks: Uint8Array[] = [];
	private size = 0;
	private readonly lines: { line: string; whole: boolean }[] = [];
	private draining = false;
	private closed: Error | undefined;

	constructor(options: ChannelOptions) {
		this.options = options;
	}

	/** Calls the other side. The promise settles with its answer, or fails with RpcError, on time-out, or when the channel closes. */
	call(method: string, params: unknown, { timeout, signal }: CallOptions = {}): Promise<unknown> {
		if (this.closed) return Promise.reject(this.closed);
		const id = this.nextId++;
		const frame = JSON.stringify({ id, method, params, jsonrpc: "2.0" });
		if (tooLarge(frame)) return Promise.reject(tooLargeError(method));
		return new Promise((resolve, reject) => {
			let timer: NodeJS.Timeout | undefined;
			const settle = (finish: () => void) => {
				clearTimeout(timer);
				signal?.removeEventListener("abort", cancel);
				this.waiting.delete(id);
				if (this.waiting.size === 0) this.options.onWaiting(false);
				finish();
			};
			const give = (delay: number, error: () => Error) => {
				clearTimeout(timer);
				timer = setTimeout(() => settle(() => reject(error())), delay);
			};
			const cancel = () => {
				this.notify(CANCEL, { id });
				give(CANCEL_GRACE, () => new RpcError(CODE_CANCELLED, `${method} was cancelled`));
			};
			this.waiting.set(id, {
				resolve: (result) => settle(() => resolve(result)),
				reject: (error) => settle(() => reject(error)),
			});
			if (this.waiting.size === 1) this.options.onWaiting(true);
			if (timeout !== undefined)
				give(timeout, () => new NoAnswer(`the helper gave no answer to "${method}" within ${timeout / 1000} s`));
			this.options.send(`${frame}\n`);
			if (signal?.aborted) cancel();
			else signal?.addEventListener("abort", cancel, { once: true });
		});
	}

	/** Sends a notification. One that is larger than a frame is dropped, for nobody could be told. */
	notify(method: string, params: unknown): void {
		const frame = JSON.stringify({ method, params, jsonrpc: "2.0" });
		if (!this.closed && !tooLarge(frame)) this.options.send(`${frame}\n`);
	}

	/** Takes bytes as they come from the other side, cut anywhere. */
	receive(chunk: Uint8Array): void {
		let start = 0;
		for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
			this.keep(chunk.subarray(start, end));
			const line = Buffer.concat(this.chunks).toString("utf8");
			if (this.size > 0) this.lines.push({ line, whole: this.size <= MAX_FRAME });
			this.chunks = [];
			this.size = 0;
			start = end + 1;
		}
		this.keep(chunk.subarray(start));
		if (!this.draining) void this.drain();
	}

	// One frame after the other, each with a turn of its own: whoever waited for an answer has seen it before the next frame is.
	private async drain(): Promise<void> {
		this.draining = true;
		for (let next = this.lines.shift(); next && !this.closed; next = this.lines.shift()) {
			if (next.whole) this.dispatch(next.line);
			else this.refuse(next.line);
			await undefined;
		}
		this.draining = false;
	}

	/** Ends the channel: calls that wait fail with the reason, calls being served are told to stop. */
	close(reason: Error): void {
		if (this.closed) return;
		this.closed = reason;
		this.chunks = [];
		for (const call of [...this.waiting.values()]) call.reject(reason);
		for (const controller of this.serving.values()) controller.abort();
		this.serving.clear();
	}

	/** Keeps a piece of the current line. Of one that is too large only the head is kept: it holds the id. */
	private keep(piece: Uint8Array): void {
		if (this.size <= MAX_FRAME) {
			this.size += piece.length;
			if (this.size <= MAX_FRAME) this.chunks.push(piece);
			else this.chunks = [Buffer.concat([...this.chunks, piece].map((part) => part.subarray(0, 256))).subarray(0, 256)];
		}
	}

	private refuse(head: string): void {
		const [, text, method] = FRAME_HEAD.exec(head) ?? [];
		if (text === undefined) return;
		const id = JSON.parse(text) as Id;
		if (method) this.answer(id, { error: asError(tooLargeError("the request")) });
		else this.waiting.get(id)?.reject(tooLargeError("the answer"));
	}

	private dispatch(line: string): void {
		const frame = parse(line);
		if (!frame) this.options.onGarbage(line);
		else if (frame.method !== undefined) this.serve(frame.method, frame);
		else if (frame.id != null) {
			const call = this.waiting.get(frame.id);
			const { error } = frame;
			if (error) call?.reject(new RpcError(error.code, error.message, error.data));
			else call?.resolve(frame.result);
		}
	}

	private serve(method: string, { id, params }: Frame): void {
		if (method === CANCEL) {
			const target = (params as { id?: Id } | undefined)?.id;
			if (target !== undefined) this.serving.get(target)?.abort();
			return;
		}
		const controller = new AbortController();
		if (id != null) this.serving.set(id, controller);
		let answer: Promise<unknown>;
		try {
			answer = this.options.handle(method, params, controller.signal) ?? Promise.reject(unknown(method));
		} catch (error) {
			answer = Promise.reject(error);
		}
		answer.then(
			(result) => id != null && this.answer(id, { result: result ?? {} }),
			(error) => id != null && this.answer(id, { error: asError(error) }),
		);
	}

	private answer(id: Id, outcome: { result: unknown } | { error: unknown }): void {
		this.serving.delete(id);
		if (this.closed) return;
		let frame: string;
		try {
			frame = JSON.stringify({ id, ...outcome, jsonrpc: "2.0" }, errorsAsText);
			if (tooLarge(frame)) throw tooLargeError("the answer");
		} catch (error) {
			frame = JSON.stringify({ id, error: asError(error), jsonrpc: "2.0" });
		}
		this.options.send(`${frame}\n`);
	}
}

function parse(line: string): Frame | undefined {
	try {
		const frame: unknown = JSON.parse(line);
		return typeof frame === "object" && frame !== null && !Array.isArray(frame) ? (frame as Frame) : undefined;
	} catch {
		return undefined;
	}
}

// A UTF-16 unit is at most three bytes, so most frames need not be measured.
function tooLarge(frame: string): boolean {
	return frame.length * 3 > MAX_FRAME && Buffer.byteLength(frame) > MAX_FRAME;
}

/** What other extensions leave in a payload may be an Error, which would come out as nothing. */
function errorsAsText(_key: string, value: unknown): unknown {
	return value instanceof Error ? value.message : value;
}

function tooLargeError(what: string): RpcError {
	return new RpcError(CODE_TOO_LARGE, `${what} is larger than ${MAX_FRAME} bytes`);
}

function unknown(method: string): RpcError {
	return new RpcError(METHOD_NOT_FOUND, `unknown method "${method}"`);
}

function asError(error: unknown): { code: number; message: string; data?: unknown } {
	if (error instanceof RpcError) return { code: error.code, message: error.message, data: error.data };
	return { code: INTERNAL_ERROR, message: error instanceof Error ? error.message : String(error) };
}
