// Brings messages into pi's conversation without ever using pi's own queue, which Escape empties without a word: sent at once when pi
// is idle, otherwise held back and offered at the next boundary of the run. A message counts as delivered when it is seen there.
import type { SendParams } from "./wire.gen.ts";

/** How long a message that was sent to an idle pi may stay unseen, in milliseconds. */
const OVERDUE = 5000;

/** Conversation is pi, as far as delivery needs it. `send` may throw. */
export interface Conversation {
	/** Nothing runs and nothing is about to, so that a message can start a run. */
	idle: () => boolean;
	/** Adds a message, and starts a run when `trigger` is set. */
	send: (message: SendParams, trigger: boolean) => void;
	holds: (id: string) => boolean;
	/** Whether messages wait: only then are boundaries of interest. */
	watch: (waiting: boolean) => void;
}

interface Entry {
	message: SendParams;
	state: "held" | "offered" | "sent";
	since: number;
	finish: (error?: Error) => void;
	/** Resolves once finish was called. */
	decided: Promise<void>;
}

export class Delivery {
	private readonly conversation: Conversation;
	private readonly entries = new Set<Entry>();

	constructor(conversation: Conversation) {
		this.conversation = conversation;
	}

	/** Resolves once the message is in the conversation; fails when pi would not have it or the session went away. */
	deliver(message: SendParams): Promise<void> {
		const { entries, conversation } = this;
		let finish: Entry["finish"] = () => {};
		const delivered = new Promise<void>((resolve, reject) => {
			finish = (error) => {
				if (!entries.delete(entry)) return;
				if (entries.size === 0) conversation.watch(false);
				if (error) reject(error);
				else resolve();
			};
		});
		const entry: Entry = { message, state: "held", since: Date.now(), finish, decided: delivered.catch(() => {}) };
		entries.add(entry);
		if (entries.size === 1) conversation.watch(true);
		this.pump();
		return delivered;
	}

	/** Sends what can be sent now, and gives up on what pi swallowed. Called now and then while messages wait. */
	pump(): void {
		for (const entry of this.entries) {
			if (!this.conversation.idle()) return;
			if (entry.state === "held") this.send(entry, entry.message.trigger);
			else if (entry.state === "sent" && Date.now() - entry.since > OVERDUE) this.settle(entry);
		}
	}

	/** The messages to add at a boundary of a run that goes well. */
	offer(): SendParams[] {
		this.confirm();
		const due = [...this.entries].filter((entry) => entry.state === "held");
		for (const entry of due) entry.state = "offered";
		return due.map((entry) => entry.message);
	}

	/** A boundary is over: what was offered there is in the conversation, or is held again. */
	confirm(): void {
		for (const entry of this.entries) {
			if (entry.state !== "offered") continue;
			if (this.conversation.holds(entry.message.id)) entry.finish();
			else entry.state = "held";
		}
	}

	/** The run is over. Whoever stopped it wants quiet, so nothing starts another one then. */
	settled(aborted: boolean): void {
		this.confirm();
		for (const entry of this.entries) if (entry.state === "held") this.send(entry, entry.message.trigger && !aborted);
	}

	/** A message of ours started a run. */
	started(id: string): void {
		for (const entry of this.entries) if (entry.message.id === id) entry.finish();
	}

	/** Gives up what pi has not been handed. What it has been handed may still appear. */
	forget(error: Error): void {
		for (const entry of this.entries) if (entry.state === "held") entry.finish(error);
	}

	/** Resolves when it is known of every message that pi was handed whether the conversation has it. */
	async decided(): Promise<void> {
		await Promise.all([...this.entries].flatMap((entry) => (entry.state === "held" ? [] : [entry.decided])));
	}

	drop(error: Error): void {
		for (const entry of this.entries) entry.finish(error);
	}

	private send(entry: Entry, trigger: boolean): void {
		entry.state = "sent";
		entry.since = Date.now();
		try {
			this.conversation.send(entry.message, trigger);
			if (!trigger) this.settle(entry);
		} catch (error) {
			entry.finish(error as Error);
		}
	}

	private settle(entry: Entry): void {
		entry.finish(this.conversation.holds(entry.message.id) ? undefined : new Error("pi did not take the message"));
	}
}
