// The helper's life as a child process: found, spawned, shaken hands with, watched, started again on next use, given up when it
// keeps falling over. Nothing it does may throw in pi, write to pi's terminal, or hold pi open.
import { type ChildProcess, spawn } from "node:child_process";
import { appendFileSync, mkdirSync, renameSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { Channel, type Handler, NoAnswer, RpcError } from "./channel.ts";
import {
	CODE_VERSION,
	INITIALIZE,
	type InitializeParams,
	type InitializeResult,
	SESSION_SHUTDOWN,
	VERSION,
} from "./wire.gen.ts";

const INITIALIZE_TIMEOUT = 3000;
const SHUTDOWN_TIMEOUT = 1000;
const EXIT_TIMEOUT = 2000;
const LAST_WORDS = 50;
const CRASH_WINDOW = 60_000;
const MAX_CRASHES = 3;
const TAIL_SIZE = 2000;
const MAX_LOG_SIZE = 1 << 20;

/** Broken is a failure that trying again won't mend: the helper is given up until the extension is loaded anew. */
class Broken extends Error {}

export interface HelperOptions {
	/** Finds the binary; throws when there is none. */
	find: () => string;
	handle: Handler;
	/** What to type when the binary is of no use. */
	remedy: string;
	/** Shows the user one notice. Never throws. */
	notice: (text: string) => void;
	/** The file that gets the helper's standard error. */
	log: string;
	/** Called after a helper that was up has ended unbidden. Never throws. */
	lost: () => void;
}

/** Helper owns the child process. */
export class Helper {
	private readonly options: HelperOptions;
	private connection: Promise<Channel> | undefined;
	private child: ChildProcess | undefined;
	private up: Channel | undefined;
	private readonly crashes: number[] = [];
	private gaveUp: Error | undefined;
	private closing = false;

	constructor(options: HelperOptions) {
		this.options = options;
	}

	/** The channel to a helper that is up, after starting one if need be. Fails with a reason that is meant for a person. */
	connect(): Promise<Channel> {
		if (this.gaveUp) return Promise.reject(this.gaveUp);
		this.connection ??= this.start();
		return this.connection;
	}

	/** Whether the helper runs and has said hello. */
	get isUp(): boolean {
		return this.up !== undefined;
	}

	/** Ends the child: it is told, its input ends, and it is killed when it does not go. Bounded, never fails. */
	async close(reason: string): Promise<void> {
		this.closing = true;
		const told = this.up?.call(SESSION_SHUTDOWN, { reason }, { timeout: SHUTDOWN_TIMEOUT });
		await told?.catch(() => undefined);
		const { child } = this;
		if (!child || child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
		await new Promise<void>((resolve) => {
			const kill = setTimeout(() => child.kill("SIGKILL"), this.up ? EXIT_TIMEOUT : 0);
			child.once("exit", () => {
				clearTimeout(kill);
				resolve();
			});
			child.ref();
			child.stdin?.end();
		});
	}

	// A helper that falls over before it has said a word is tried again at once, for somebody is waiting.
	private async start(): Promise<Channel> {
		for (;;) {
			try {
				return await this.launch();
			} catch (error) {
				if (this.closing) throw error;
				this.countCrash(error as Error);
				if (this.gaveUp) throw this.gaveUp;
			}
		}
	}

	private async launch(): Promise<Channel> {
		const path = this.find();
		const child = this.spawn(path);
		this.child = child;
		const stderr = new Tail(this.options.log);
		let cause: Error | undefined;
		const fail = (reason: Error) => {
			cause ??= reason;
			channel.close(reason);
			child.kill("SIGKILL");
		};
		const channel = new Channel({
			send: (frame) => child.stdin?.writable && child.stdin.write(frame),
			handle: this.options.handle,
			onWaiting: (waiting) => hold(child, waiting),
			onGarbage: (line) =>
				fail(this.broken(`"${path}" wrote something that is no message: ${JSON.stringify(line.slice(0, 80))}`)),
		});
		let late: NodeJS.Timeout | undefined;
		const ended = (how: string) => {
			clearTimeout(late);
			cause ??= new Error(`the helper ${how}${stderr.text()}`);
			channel.close(cause);
			if (this.up !== channel) return;
			this.connection = undefined;
			if (!this.closing) this.countCrash(cause);
			this.up = undefined;
			if (!this.closing) this.options.lost();
		};
		child.on("error", (error) => fail(this.broken(`"${path}" can't be run: ${error.message}`)));
		child.on("exit", (code, signal) => {
			const how = signal ? `was ended by ${signal}` : `ended with exit code ${code}`;
			// Its last words may still be in the pipe, and the pipe may be held open by somebody else.
			clearTimeout(late);
			late = setTimeout(ended, LAST_WORDS, how);
			child.once("close", () => ended(how));
		});
		// One that hears or says no more is of no use, but mostly it is just about to end, and says why.
		const cut = () => {
			if (!this.closing) late ??= setTimeout(fail, LAST_WORDS, new Error("the helper closed its end of the pipe"));
		};
		child.stdin?.on("error", cut);
		child.stdout?.on("error", cut).on("end", cut);
		child.stderr?.on("error", () => {});
		child.stdout?.on("data", (chunk: Buffer) => channel.receive(chunk));
		child.stderr?.on("data", (chunk: Buffer) => stderr.add(chunk));
		hold(child, false);
		try {
			await this.shakeHands(channel, path);
		} catch (error) {
			fail(error as Error);
			throw cause;
		}
		this.up = channel;
		return channel;
	}

	private async shakeHands(channel: Channel, path: string): Promise<void> {
		try {
			const params: InitializeParams = { version: VERSION };
			const hello = (await channel.call(INITIALIZE, params, { timeout: INITIALIZE_TIMEOUT })) as InitializeResult;
			if (hello.version === VERSION) return;
			throw new RpcError(
				CODE_VERSION,
				`the extension is version "${VERSION}", "${path}" is version "${hello.version}"`,
			);
		} catch (error) {
			if (error instanceof NoAnswer) throw this.broken(`"${path}" does not answer`);
			if (error instanceof RpcError) throw this.broken(error.message);
			throw error;
		}
	}

	private find(): string {
		try {
			return this.options.find();
		} catch (error) {
			throw new Broken((error as Error).message);
		}
	}

	// In a session of its own, so that a Ctrl-C meant for pi and the end of the terminal don't reach it: the end of its standard
	// input is what ends it.
	private spawn(path: string): ChildProcess {
		try {
			return spawn(path, ["serve"], { stdio: "pipe", detached: true });
		} catch (error) {
			throw this.broken(`"${path}" can't be run: ${(error as Error).message}`);
		}
	}

	private broken(message: string): Broken {
		return new Broken(`${message}. Type: ${this.options.remedy}`);
	}

	private countCrash(error: Error): void {
		const now = Date.now();
		this.crashes.push(now);
		const recent = this.crashes.filter((time) => now - time < CRASH_WINDOW).length;
		if (error instanceof Broken || recent >= MAX_CRASHES) {
			const remedy = this.up || error instanceof Broken ? "" : `\nType: ${this.options.remedy}`;
			this.gaveUp = new Error(`squire is off: ${error.message}${remedy}`);
			this.options.notice(`${this.gaveUp.message}\nThen type: /reload`);
		} else if (this.up) {
			this.options.notice(`squire: ${error.message}\nIt is started again when it is needed.`);
		}
	}
}

/** Tail keeps the end of the helper's standard error for notices, and all of it, within bounds, in a private file. */
class Tail {
	private readonly log: string;
	private kept = "";

	constructor(log: string) {
		this.log = log;
	}

	add(chunk: Buffer): void {
		this.kept = (this.kept + chunk.toString("utf8")).slice(-TAIL_SIZE);
		try {
			mkdirSync(dirname(this.log), { recursive: true, mode: 0o700 });
			const size = statSync(this.log, { throwIfNoEntry: false })?.size ?? 0;
			if (size > MAX_LOG_SIZE) renameSync(this.log, `${this.log}.1`);
			appendFileSync(this.log, chunk, { mode: 0o600 });
		} catch {
			// A log that can't be written is no reason to disturb pi.
		}
	}

	text(): string {
		const text = this.kept.trim();
		return text && `, after writing:\n${text}`;
	}
}

/** While pi waits for an answer the child keeps its event loop alive; otherwise pi is free to end. */
function hold(child: ChildProcess, waiting: boolean): void {
	for (const handle of [child, child.stdin, child.stdout, child.stderr]) {
		const socket = handle as { ref?: () => void; unref?: () => void } | null;
		if (waiting) socket?.ref?.();
		else socket?.unref?.();
	}
}
