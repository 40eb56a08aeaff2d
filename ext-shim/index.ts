// The pi side of squire: registers commands, tools, hooks and renderers, and carries what happens to the helper, which decides
// everything, and back. This file and session.ts are all that knows pi's API. What comes late, when pi has moved on to another
// session, must find none here: pi's own objects throw then, and a throw in a timer or an unhandled rejection ends pi.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { getSupportedThinkingLevels, type JsonValue } from "@earendil-works/pi-ai";
import {
	type BoundaryResult,
	type BoundaryState,
	type ExtensionAPI,
	type ExtensionContext,
	getAgentDir,
	hasTrustRequiringProjectResources,
	VERSION as PI_VERSION,
	ProjectTrustStore,
	type SessionStartEvent,
	type ToolDefinition,
} from "@earendil-works/pi-coding-agent";
import { answered, type CallOptions, type Channel, describe, RpcError } from "./channel.ts";
import { callRow, messageRow, resultRow, safeText } from "./paint.ts";
import { findHelper, installCommand, piCommand } from "./platform.ts";
import {
	attempt,
	type Conversation,
	claimed,
	completionHolds,
	customMessage,
	MESSAGE_TYPE,
	messageIds,
	modelRef,
	registerHost,
	Session,
	stage,
	textOf,
	unregisterHost,
	userTexts,
	writePrivate,
} from "./session.ts";
import { Helper } from "./spawn.ts";
import * as wire from "./wire.gen.ts";

const COPY = Symbol.for("pi-cradle.shim");
const MAX_TEXT = 4 << 20;
const EXPAND = ["app.tools.expand", "to expand"] as const;
/** How long a submitted prompt may take to become a run, in milliseconds; other extensions may look at it first. */
const SUBMIT = 1000;
/** How often waiting messages are looked at when no event of a run calls for it, in milliseconds. */
const RETRY = 250;

type HelperMethod = keyof wire.HelperMethods;
type Params<M extends HelperMethod> = wire.HelperMethods[M]["params"];
type Result<M extends HelperMethod> = wire.HelperMethods[M]["result"];
type HostMethod = keyof wire.HostMethods;
type Host = {
	[M in Exclude<HostMethod, "cancel">]: (
		params: wire.HostMethods[M]["params"],
		session: Session,
		signal: AbortSignal,
	) => Answer<wire.HostMethods[M]["result"]>;
};
type Answer<T> = T | Promise<T>;

class Squire {
	private readonly pi: ExtensionAPI;
	private readonly helper: Helper;
	private readonly agentDir = getAgentDir();
	private session: Session | undefined;
	private started: { channel: Channel; session: Session; done: Promise<void> } | undefined;
	private readonly early: string[] = [];
	private readonly reported = new Set<string>();
	private inactive = new Set<string>();

	constructor(pi: ExtensionAPI) {
		this.pi = pi;
		this.helper = new Helper({
			find: () => findHelper(import.meta.url),
			remedy: installCommand(import.meta.url),
			log: join(this.agentDir, "squire", "log", "helper.log"),
			notice: (text) => this.notice("error", text),
			handle: (method, params, signal) => this.serve(method, params, signal),
			lost: () => this.recover(),
		});
		this.helper.connect().catch(() => {}); // boots while pi does; a failure is noticed by the helper's owner
	}

	/** Whether a session of pi uses this copy. */
	inUse(): boolean {
		try {
			return this.session !== undefined && this.pi.getSessionName() !== null;
		} catch {
			return false; // pi has dropped us without a word
		}
	}

	async close(reason: wire.SessionShutdownParams["reason"]): Promise<void> {
		const { session } = this;
		this.session = undefined;
		if (session) {
			unregisterHost(session.id, session.token);
			session.delivery.drop(stale());
			session.open();
		}
		await this.helper.close(reason);
	}

	register(): void {
		const { pi } = this;
		for (const tool of wire.TOOLS) pi.registerTool(this.tool(tool));
		for (const { name, description } of wire.COMMANDS) {
			pi.registerCommand(name, {
				description,
				getArgumentCompletions: (prefix) => this.complete(name, prefix),
				handler: async (args) => {
					await this.ask("command.run", { command: name, args }).catch((error) =>
						this.notice("error", describe(error)),
					);
				},
			});
		}
		pi.registerMessageRenderer<{ view?: wire.View }>(MESSAGE_TYPE, ({ details }, options, theme) => {
			const hint = options.keyHint?.(...EXPAND) ?? ""; // pi 1.3 has none
			return details?.view && messageRow(details.view, options.expanded, hint, options.outputPad ?? 1, theme);
		});
		this.hook();
	}

	private hook(): void {
		const { pi } = this;
		pi.events.on("message:inbound", (payload) => this.takeMail(payload as wire.Inbound & { handled?: boolean }));
		pi.on("session_start", (event, ctx) => this.begin(event, ctx));
		pi.on("resources_discover", () => this.openSoon());
		pi.on("input", ({ source }, ctx) => {
			if (this.session && ctx.isIdle()) this.session.submittedUntil = Date.now() + SUBMIT;
			if (source !== "extension") this.tell("input.seen", { source });
		});
		pi.on("before_agent_start", async (event) => {
			if (this.session) Object.assign(this.session, { submittedUntil: 0, running: true });
			const delegating = this.pi.getActiveTools().includes("delegate");
			const prepared = await this.ask("run.prepare", { delegating }, { timeout: 2000 }).catch(() => undefined);
			const options = event.systemPromptOptions;
			options.sections = { ...options.sections, ...prepared?.sections };
		});
		pi.on("message_start", ({ message }) => {
			if (message.role !== "custom" || message.customType !== MESSAGE_TYPE) return;
			this.session?.delivery.started(String((message.details as { id?: unknown } | undefined)?.id));
		});
		pi.on("message_end", ({ message }) => {
			if (message.role === "assistant" && this.session) this.session.lastAnswer = message;
		});
		pi.on("agent_settled", ({ aborted }) => this.settle(aborted));
		pi.on("session_shutdown", async ({ reason }) => {
			await this.close(reason);
			if (copies[COPY]?.squire === this) delete copies[COPY];
		});
	}

	private async begin({ reason }: SessionStartEvent, ctx: ExtensionContext): Promise<void> {
		this.session = new Session(ctx, reason, this.agentDir, (session) => this.conversation(session));
		for (const text of this.early.splice(0)) this.notice("error", text);
		const { session } = this;
		await this.connect().catch((error) => this.report(error));
		if (this.session !== session) return;
		// Once, and before the session_start of the extensions after us. Without a helper nobody knows who this session is.
		this.pi.events.emit(
			"squire:identity",
			deepFreeze(session.identity ?? { sessionId: session.id, status: "invalid" }),
		);
	}

	private conversation(session: Session): Conversation {
		const { ctx } = session;
		return {
			idle: () => session.isOpen && Date.now() >= session.submittedUntil && attempt(() => ctx.isIdle(), false),
			send: (message, triggerTurn) => this.pi.sendMessage(customMessage(message), { triggerTurn }),
			holds: (id) => attempt(() => messageIds(ctx).has(id), false),
			watch: (waiting) => this.watch(session, waiting),
		};
	}

	/**
	 * The helper fell over. What it had handed us and pi has not seen yet is forgotten, for the next helper hands it over again;
	 * and when answers or tasks are awaited that next one is started at once, for nothing else might ever call for it.
	 */
	private recover(): void {
		const { session } = this;
		if (!session) return;
		session.delivery.forget(stale());
		if (session.claims.parent || Object.keys(session.claims.requests).length > 0) this.connect().catch(() => {});
	}

	/** Called when every extension has had its session_start. pi's start goes on until its event loop turns. */
	private openSoon(): void {
		const { session } = this;
		setImmediate(() => {
			if (!session || this.session !== session) return;
			session.isOpen = true;
			session.open();
			session.delivery.pump();
		});
	}

	/** While messages wait, looks at the boundaries of a run: pi prepares them anew for everybody who does. */
	private watch(session: Session, waiting: boolean): void {
		const { pi } = this;
		const { delivery } = session;
		for (const stop of session.boundaries.splice(0)) stop();
		if (!waiting) return;
		const boundary = (event: BoundaryState, ctx: ExtensionContext): BoundaryResult | undefined => {
			const due = event.outcome === "completed" ? delivery.offer() : [];
			if (due.length === 0) return undefined;
			const drafts = due.map((message) => ({ type: "custom_message" as const, ...customMessage(message) }));
			const wanted = due.some((message) => message.trigger) && !ctx.signal?.aborted;
			return { entries: [...event.entries, ...drafts], continue: event.continue || wanted };
		};
		const timer = setInterval(() => delivery.pump(), RETRY).unref();
		session.boundaries.push(
			() => clearInterval(timer),
			pi.on("turn_start", () => delivery.confirm()),
			pi.on("turn_end", boundary),
			pi.on("agent_before_settle", boundary),
		);
	}

	private takeMail(payload: wire.Inbound & { handled?: boolean }): void {
		const { session } = this;
		if (!session || payload?.handled || !claimed(session.claims, payload?.envelope)) return;
		const inbound = { envelope: payload.envelope, path: payload.path, requests: payload.requests ?? [] };
		try {
			const file = stage(session.inbox, inbound);
			this.tell("mail.staged", { file });
		} catch {
			if (!this.helper.isUp) return; // the provider keeps it
			this.insist("mail.inbound", inbound).catch((error) => this.report(error));
		}
		payload.handled = true;
	}

	private async settle(aborted: boolean): Promise<void> {
		const { session } = this;
		if (!session) return;
		const { lastAnswer: answer, ctx } = session;
		Object.assign(session, { lastAnswer: undefined, submittedUntil: 0, running: false });
		session.delivery.settled(aborted);
		let text = textOf(answer?.content ?? "", "\n");
		let textPath = "";
		try {
			if (Buffer.byteLength(text) > MAX_TEXT) {
				textPath = join(session.folder, `answer-${crypto.randomUUID()}.txt`);
				writePrivate(textPath, text);
				text = "";
			}
			const outcome: wire.RunSettledParams = {
				...{ aborted, text, textPath, stopReason: answer?.stopReason ?? "", error: answer?.errorMessage ?? "" },
				model: answer ? { provider: answer.provider, id: answer.model } : (modelRef(ctx) ?? { provider: "", id: "" }),
				...completionHolds(session.id),
			};
			await this.insist("run.settled", outcome, { timeout: 10_000 });
		} catch (error) {
			this.report(error);
		}
	}

	/** The channel to a helper that serves the session. */
	private async connect(): Promise<Channel> {
		const { session } = this;
		if (!session) throw stale();
		const channel = await this.helper.connect();
		if (this.session !== session) throw stale();
		if (this.started?.channel !== channel || this.started.session !== session) {
			this.started = { channel, session, done: this.startSession(channel, session) };
		}
		const { started } = this;
		await started.done.catch((error) => {
			if (this.started === started) this.started = undefined;
			throw error;
		});
		return channel;
	}

	private startSession(channel: Channel, session: Session): Promise<void> {
		const { ctx } = session;
		const manager = ctx.sessionManager;
		const model = modelRef(ctx);
		const params: wire.SessionStartParams = {
			sessionId: session.id,
			sessionFile: manager.getSessionFile() ?? "",
			sessionDir: manager.getSessionDir(),
			cwd: ctx.cwd,
			name: manager.getSessionName() ?? "",
			reason: session.reason,
			again: session.served,
			mode: ctx.mode,
			hasUI: ctx.hasUI,
			trusted: ctx.isProjectTrusted(),
			agentDir: this.agentDir,
			piVersion: PI_VERSION,
			piCommand: piCommand(),
			shim: fileURLToPath(import.meta.url),
			...(model && { model }),
			thinking: this.pi.getThinkingLevel(),
		};
		// In place before the helper's next frame is looked at.
		return channel.call("session.start", params, { timeout: 5000 }).then((answer) => {
			const { claims, inbox, tools, active, identity } = answer as wire.SessionStartResult;
			if (this.session !== session) throw stale();
			Object.assign(session, { claims, inbox, identity, served: true });
			registerHost(session.id, session.token);
			this.inactive = new Set(wire.TOOLS.map((tool) => tool.name).filter((name) => !active.includes(name)));
			this.updateTools([...tools, ...wire.TOOLS.filter(({ name }) => this.inactive.has(name))]);
		});
	}

	private async ask<M extends HelperMethod>(method: M, params: Params<M>, options?: CallOptions): Promise<Result<M>> {
		return (await this.connect()).call(method, params, options) as Promise<Result<M>>;
	}

	/** Asks once more when the helper falls over at just this moment: the next one must hear of it. */
	private insist<M extends HelperMethod>(method: M, params: Params<M>, options?: CallOptions): Promise<Result<M>> {
		const ask = () => this.ask(method, params, options);
		return ask().catch((error) => (answered(error) ? Promise.reject(error) : ask()));
	}

	private tell<M extends HelperMethod>(method: M, params: Params<M>): void {
		const notify = (channel: Channel) => channel.notify(method, params);
		this.connect().then(notify, () => {});
	}

	private serve(method: string, params: unknown, signal: AbortSignal): Promise<unknown> | undefined {
		const handler = (this.host as Record<string, Host[keyof Host] | undefined>)[method];
		if (!handler) return undefined;
		const { session } = this;
		return (async () => {
			if (!session) throw stale();
			return (handler as (...args: unknown[]) => unknown)(params, session, signal);
		})();
	}

	private readonly host: Host = {
		"host.notify": ({ level, text }) => {
			this.notice(level as NoticeLevel, text);
		},
		"host.status": ({ key, text }, { ctx }) => {
			ctx.ui.setStatus(key, safeText(text) || undefined);
		},
		"host.claims": (claims, session) => {
			session.claims = claims;
		},
		"host.tool": (update) => {
			this.updateTools([update]);
		},
		"host.send": async (message, { delivery }) => {
			await delivery.deliver(message);
			return {};
		},
		"host.prompt": async ({ text }, session) => {
			await session.inTurn(() => {
				if (this.session !== session) throw stale();
				if (session.ctx.isIdle()) session.submittedUntil = Date.now() + SUBMIT;
				this.pi.sendUserMessage(text, { deliverAs: "followUp" });
			});
			return {};
		},
		"host.exit": (_, session) => {
			setImmediate(() => this.session === session && attempt(() => session.ctx.shutdown(), undefined));
			return {};
		},
		"host.emit": ({ channel, payload, freeze }) => {
			if (freeze === "*") deepFreeze(payload);
			else if (freeze) deepFreeze((payload as Record<string, unknown>)[freeze]);
			this.pi.events.emit(channel, payload);
			return { payload };
		},
		"host.entries": async ({ messages, prompts }, { ctx, delivery }) => {
			await delivery.decided();
			const ids = messageIds(ctx);
			const texts = userTexts(ctx);
			return {
				messages: messages.filter((id) => ids.has(id)),
				prompts: prompts.filter((start) => texts.some((text) => text.startsWith(start))),
			};
		},
		"host.models": ({ all }, { ctx }) => {
			const registry = ctx.modelRegistry;
			const models = (all ? registry.getAll() : registry.getAvailable()).map((model) => ({
				...{ provider: model.provider, id: model.id, name: model.name },
				available: registry.hasConfiguredAuth(model),
				thinking: getSupportedThinkingLevels(model),
			}));
			const current = modelRef(ctx);
			return { models, thinking: this.pi.getThinkingLevel(), ...(current && { current }) };
		},
		"host.tools": () => {
			const active = this.pi.getActiveTools();
			const searchable = active.includes("codemode") || active.includes("tool_search");
			const reachable = this.pi
				.getAllTools()
				.filter(({ exposure }) => exposure === "codemode" || exposure === "deferred");
			return { active, available: [...new Set([...active, ...(searchable ? reachable.map(({ name }) => name) : [])])] };
		},
		"host.dialog": async (params, { ctx }, signal) => (await import("./dialogs.ts")).ask(params, ctx, signal), // rarely needed
		"host.trust.look": ({ dir, key }) => {
			const saved = new ProjectTrustStore(this.agentDir).get(key) ?? undefined;
			return { ...(saved !== undefined && { saved }), protected: hasTrustRequiringProjectResources(dir) };
		},
		"host.trust.save": ({ updates }, _session, signal) => {
			if (!signal.aborted) new ProjectTrustStore(this.agentDir).setMany(updates);
			return {};
		},
	};

	private tool({ name, label, description, snippet, parameters, output }: wire.Tool): ToolDefinition {
		return {
			...{ name, label, description, promptSnippet: snippet, parameters },
			...(output && { outputSchema: output }),
			...(this.inactive.has(name) && { exposure: "hidden" }), // or a pattern of --tools would activate it
			execute: async (callId, params, signal) => {
				const call = { tool: name, callId, params };
				const result = await this.ask("tool.call", call, { signal }).catch((error) => {
					throw new Error(describe(error));
				});
				return {
					content: [{ type: "text", text: result.text }],
					details: { ...(result.details as object), view: result.view },
					...(result.structured !== undefined && { structuredContent: result.structured as JsonValue }),
					isError: result.isError,
				};
			},
			renderCall: (args, theme, { state }) => callRow(label, args, theme, state),
			renderResult: (result, { expanded }, theme, { state, isError, keyHint }) => {
				const view = (result.details as { view?: wire.View } | undefined)?.view;
				const text = textOf(result.content, "\n");
				return resultRow(isError ? undefined : view, text, expanded, keyHint?.(...EXPAND) ?? "", theme, state);
			},
		};
	}

	private updateTools(updates: wire.ToolUpdate[]): void {
		const wanted = this.pi.getActiveTools().filter((name) => !this.inactive.has(name));
		for (const { name, description } of updates) {
			const tool = wire.TOOLS.find((tool) => tool.name === name);
			if (tool) this.pi.registerTool(this.tool({ ...tool, description }));
		}
		// pi may activate a tool that is registered anew, also one that somebody has put aside.
		if (this.pi.getActiveTools().join() !== wanted.join()) this.pi.setActiveTools(wanted);
	}

	private async complete(command: string, prefix: string): Promise<wire.Completion[] | null> {
		const answer = await this.ask("command.complete", { command, prefix }, { timeout: 1000 }).catch(() => undefined);
		return answer?.items.length ? answer.items : null;
	}

	/** Notices a failure that nobody asked about, unless it was noticed already or its session is gone. */
	private report(error: unknown): void {
		const text = describe(error);
		const gone = error instanceof RpcError && error.code === wire.CODE_STALE;
		if (answered(error) && !gone && !this.reported.has(text)) this.notice("error", text);
		this.reported.add(text);
	}

	private notice(level: NoticeLevel, text: string): void {
		if (this.session) attempt(() => this.session?.ctx.ui.notify(safeText(text), level), undefined);
		else this.early.push(text);
	}
}

type NoticeLevel = "info" | "warning" | "error";

function stale(): RpcError {
	return new RpcError(wire.CODE_STALE, "the session is gone");
}

function deepFreeze<T>(value: T): T {
	if (typeof value === "object" && value !== null) {
		for (const part of Object.values(value)) deepFreeze(part);
		Object.freeze(value);
	}
	return value;
}

const copies = globalThis as { [COPY]?: { url: string; squire: Squire } };

/** The extension. A second copy in the same pi, from a package and `-e`, or in a session that another extension opens, does nothing. */
export default function (pi: ExtensionAPI): void {
	const other = copies[COPY];
	if (other && (other.url !== import.meta.url || other.squire.inUse())) return;
	void other?.squire.close("reload"); // loaded twice before a session began
	const squire = new Squire(pi);
	copies[COPY] = { url: import.meta.url, squire };
	squire.register();
}
