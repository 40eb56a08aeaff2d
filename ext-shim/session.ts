// One session of pi, from session_start to session_shutdown: what is kept about it, its mail, the way of messages into its
// conversation, and the completion holds of other extensions. None of it decides anything.
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { AssistantMessage } from "@earendil-works/pi-ai";
import type { ExtensionContext, SessionStartEvent } from "@earendil-works/pi-coding-agent";
import type { Claims, Inbound, ModelRef, SendParams } from "./wire.gen.ts";

/** The type of our messages in a session. */
export const MESSAGE_TYPE = "squire";

/** What lives from session_start to session_shutdown. */
export class Session {
	readonly ctx: ExtensionContext;
	readonly reason: SessionStartEvent["reason"];
	readonly token = crypto.randomUUID();
	readonly id: string;
	readonly folder: string;
	inbox: string;
	claims: Claims;
	/** What squire:identity says, once a helper has answered. */
	identity: unknown;
	/** Whether a helper has answered session.start. */
	served = false;
	lastAnswer: AssistantMessage | undefined;
	/** Until when a submitted prompt is expected to start a run, which we must not overtake. */
	submittedUntil = 0;
	/** Between before_agent_start and agent_settled. */
	running = false;
	/** Whether pi has started up, so that a run may be started. */
	isOpen = false;
	/** Marks it open, or lets go of who waits for that when the session ends first. */
	open = () => {};
	readonly opened = new Promise<void>((resolve) => {
		this.open = resolve;
	});
	/** Stops watching the boundaries of runs. */
	readonly boundaries: (() => void)[] = [];
	readonly delivery: Delivery;
	private prompts: Promise<void> = Promise.resolve();

	constructor(
		ctx: ExtensionContext,
		reason: SessionStartEvent["reason"],
		agentDir: string,
		conversation: (session: Session) => Conversation,
	) {
		this.ctx = ctx;
		this.reason = reason;
		this.id = ctx.sessionManager.getSessionId();
		this.folder = ownerFolder(agentDir, this.id);
		this.inbox = join(this.folder, "inbound");
		this.claims = readClaims(this.folder);
		this.delivery = new Delivery(conversation(this));
	}

	/** Submits prompts one after the other: not beside another one, and not while pi compacts, for it would drop them. */
	inTurn(submit: () => void): Promise<void> {
		const compacting = () => !this.running && !attempt(() => this.ctx.isIdle(), true);
		const turn = this.prompts.then(async () => {
			await this.opened;
			while (Date.now() < this.submittedUntil || compacting()) await new Promise((resolve) => setTimeout(resolve, 10));
			submit();
		});
		this.prompts = turn.catch(() => {});
		return turn;
	}
}

/** What pi's objects say, or otherwise when they throw because pi has moved on. */
export function attempt<T>(act: () => T, otherwise: T): T {
	try {
		return act();
	} catch {
		return otherwise;
	}
}

export function modelRef({ model }: ExtensionContext): ModelRef | undefined {
	return model && { provider: model.provider, id: model.id };
}

/** A message of ours as pi takes it. */
export function customMessage({ id, content, details, view, hidden }: SendParams) {
	return { customType: MESSAGE_TYPE, content, display: !hidden, details: { ...details, id, view } };
}

export function messageIds(ctx: ExtensionContext): Set<unknown> {
	const ids = ctx.sessionManager.getEntries().map((entry) => {
		if (entry.type !== "custom_message" || entry.customType !== MESSAGE_TYPE) return undefined;
		return (entry.details as { id?: unknown } | undefined)?.id;
	});
	return new Set(ids);
}

export function userTexts(ctx: ExtensionContext): string[] {
	return ctx.sessionManager.getEntries().flatMap((entry) => {
		if (entry.type !== "message" || entry.message.role !== "user") return [];
		return [textOf(entry.message.content, "")];
	});
}

export function textOf(content: string | { type: string; text?: string }[], separator: string): string {
	if (typeof content === "string") return content;
	return content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join(separator);
}

// Mail that this session takes over from a message:* provider. What is whose is data of the helper's; here it is only compared, and a
// claimed envelope written down, for the provider's event waits for no answer.

interface Envelope {
	from?: unknown;
	kind?: unknown;
	in_reply_to?: unknown;
}

/** The folder under which the helper keeps what belongs to a session. */
export function ownerFolder(agentDir: string, sessionId: string): string {
	return join(agentDir, "squire", "owners", encodeURIComponent(sessionId));
}

/** The claims as the helper last wrote them; none when there is no such file or it can't be read. */
export function readClaims(folder: string): Claims {
	try {
		const { requests, parent } = JSON.parse(readFileSync(join(folder, "claims.json"), "utf8"));
		return { requests: requests ?? {}, parent: parent ?? "" };
	} catch {
		return { requests: {}, parent: "" };
	}
}

/** Whether the session takes an envelope over: an awaited answer from the awaited address, or a task from its parent. */
export function claimed(claims: Claims, envelope: unknown): boolean {
	const { from, kind, in_reply_to } = (envelope ?? {}) as Envelope;
	const answers = Array.isArray(in_reply_to) ? in_reply_to : [];
	const effective = kind ?? (answers.length > 0 ? "reply" : "request");
	if (typeof from !== "string" || from === "") return false;
	if (effective === "request") return from === claims.parent;
	return (
		effective === "reply" && answers.some((id) => Object.hasOwn(claims.requests, id) && claims.requests[id] === from)
	);
}

let lastStamp = 0;

/** Writes an envelope to the folder as one private file, whole or not at all, and gives the file's name. Names sort by arrival. */
export function stage(folder: string, inbound: Inbound): string {
	lastStamp = Math.max(Date.now(), lastStamp + 1);
	const name = `${String(lastStamp).padStart(15, "0")}-${crypto.randomUUID()}.json`;
	writePrivate(join(folder, `.${name}.tmp`), JSON.stringify(inbound));
	renameSync(join(folder, `.${name}.tmp`), join(folder, name));
	sync(folder);
	return name;
}

/** Writes a new file, in a folder that is made if need be, that only its owner can read, and waits until it is on disk. */
export function writePrivate(path: string, text: string): void {
	mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
	writeFileSync(path, text, { mode: 0o600, flag: "wx" });
	sync(path);
}

function sync(path: string): void {
	const file = openSync(path, "r");
	try {
		fsyncSync(file);
	} finally {
		closeSync(file);
	}
}

// Messages go into the conversation without ever using pi's own queue, which Escape empties without a word: sent at once when pi is
// idle, otherwise held back and offered at the next boundary of the run. One counts as delivered when it is seen there.

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

// Completion holds, version 1: a table in this process in which other extensions say that a session is not done yet. We announce
// ourselves in it and read it; everything else in it belongs to others.

const HOLDS = Symbol.for("pi.completion-holds.v1");
const HOST = "pi-squire";

interface Table {
	version: 1;
	hosts: Map<string, Map<string, string>>;
	holds: Map<string, Map<string, { provider: string; ready: boolean }>>;
}

/** The table, undefined when there is none, null when what is there is no such table. */
function table(): Table | undefined | null {
	const found = (globalThis as Record<symbol, unknown>)[HOLDS] as Table | undefined;
	if (found === undefined) return undefined;
	return found?.version === 1 && found.hosts instanceof Map && found.holds instanceof Map ? found : null;
}

/** Announces that this session reads holds. A malformed table is left as it is. */
export function registerHost(session: string, token: string): void {
	const fresh: Table = { version: 1, hosts: new Map(), holds: new Map() };
	const found = table() === undefined ? fresh : table();
	if (!found) return;
	Object.assign(globalThis, { [HOLDS]: found });
	if (!found.hosts.has(session)) found.hosts.set(session, new Map());
	const hosts: unknown = found.hosts.get(session);
	if (hosts instanceof Map) hosts.set(HOST, token);
}

/** Takes the announcement back, unless somebody else has made a new one. */
export function unregisterHost(session: string, token: string): void {
	const hosts: unknown = table()?.hosts.get(session);
	if (!(hosts instanceof Map) || hosts.get(HOST) !== token) return;
	hosts.delete(HOST);
	if (hosts.size === 0) table()?.hosts.delete(session);
}

/** Whether something still holds up the session's completion, and what. */
export function completionHolds(session: string): { holds: "none" | "waiting" | "malformed"; hold?: string } {
	const found = table();
	if (found === undefined) return { holds: "none" };
	const hosts: unknown = found?.hosts.get(session) ?? new Map();
	const holds: unknown = found?.holds.get(session) ?? new Map();
	if (!found || !(hosts instanceof Map) || !(holds instanceof Map)) return { holds: "malformed" };
	if ([...hosts.values()].some((token) => typeof token !== "string")) return { holds: "malformed" };
	for (const [hold, state] of holds) {
		if (typeof state?.provider !== "string" || typeof state.ready !== "boolean")
			return { holds: "malformed", hold: String(hold) };
	}
	for (const [hold, state] of holds) if (!state.ready) return { holds: "waiting", hold: `${state.provider}: ${hold}` };
	return { holds: "none" };
}
