// One session of pi: what is kept about it between session_start and session_shutdown, and what is read from it.
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { AssistantMessage } from "@earendil-works/pi-ai";
import type { ExtensionContext, SessionStartEvent } from "@earendil-works/pi-coding-agent";
import { type Conversation, Delivery } from "./delivery.ts";
import { ownerFolder, readClaims } from "./mail.ts";
import type { Claims, ModelRef, SendParams } from "./wire.gen.ts";

/** The type of our messages in a session. */
export const MESSAGE_TYPE = "squire";

/** What lives from session_start to session_shutdown. */
export class Session {
	readonly ctx: ExtensionContext;
	readonly reason: SessionStartEvent["reason"];
	readonly token = randomUUID();
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
