// A mail provider for tests: the four message:* hooks over the shared mail root, as the contract has them. PROVIDER_FOR says which
// sessions have it: "parent", "delegate" or "both". With PROVIDER_PASSIVE the parent's claims mail only when it is asked to. Mail that nobody takes over is shown as a message of its own.
import { randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, watch, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

interface Envelope {
	id: string;
	from: string;
	to: string;
	kind: string;
	hops: number;
	in_reply_to: string[];
	status: string;
	ts: string;
	body: string;
}

const root = join(process.env.XDG_STATE_HOME ?? "", "pi-session-mail");
const role = process.env.PI_DELEGATE_PARENT ? "delegate" : "parent";

function box(address: string, folder: string): string {
	const dir = join(root, address, folder);
	mkdirSync(dir, { recursive: true, mode: 0o700 });
	return dir;
}

let last = 0;
function fileName(id: string): string {
	last = Math.max(Date.now(), last + 1);
	return `${String(last).padStart(15, "0")}-${id}.json`;
}

function write(envelope: Envelope): void {
	const text = `${JSON.stringify(envelope, null, 2)}\n`;
	const name = fileName(envelope.id);
	if (envelope.kind !== "reply") writeFileSync(join(box(envelope.from, "sent"), name), text, { mode: 0o600 });
	writeFileSync(join(box(envelope.to, "tmp"), name), text, { mode: 0o600 });
	renameSync(join(box(envelope.to, "tmp"), name), join(box(envelope.to, "new"), name));
}

function read(path: string): Envelope {
	return JSON.parse(readFileSync(path, "utf8")) as Envelope;
}

export default function (pi: ExtensionAPI) {
	const wanted = process.env.PROVIDER_FOR;
	if (wanted !== "both" && wanted !== role) return;
	let self = "";
	let stop = () => {};

	function make(to: string, body: string, kind: string, inReplyTo: string[], status: string): Envelope {
		const ts = new Date().toISOString();
		return { id: randomUUID(), from: self, to, kind, hops: 0, in_reply_to: inReplyTo, status, ts, body };
	}

	function claim(): void {
		for (const name of readdirSync(box(self, "new")).sort()) {
			const path = join(box(self, "cur"), name);
			renameSync(join(box(self, "new"), name), path);
			const envelope = read(path);
			const requests = readdirSync(box(self, "sent"))
				.map((sent) => join(box(self, "sent"), sent))
				.map((sent) => ({ envelope: read(sent), path: sent }))
				.filter((sent) => envelope.in_reply_to.includes(sent.envelope.id));
			const payload = { envelope, path, requests, handled: false };
			pi.events.emit("message:inbound", payload);
			if (!payload.handled) {
				pi.sendMessage(
					{ customType: "mail", content: `[mail] ${envelope.body}`, display: true },
					{ triggerTurn: true },
				);
			}
		}
	}

	pi.events.on("message:send", (data) => {
		const payload = data as { to: string; body: string; envelope?: Envelope };
		payload.envelope = make(payload.to, payload.body, "request", [], "");
		write(payload.envelope);
	});
	pi.events.on("message:reply", (data) => {
		const payload = data as { to: string; inReplyTo: string[]; body: string; status: string; envelope?: Envelope };
		payload.envelope = make(payload.to, payload.body, "reply", payload.inReplyTo, payload.status);
		write(payload.envelope);
	});
	pi.events.on("message:scan", (data) => {
		claim();
		(data as { scanned?: boolean }).scanned = true;
	});
	pi.on("session_start", (_event, ctx) => {
		self = ctx.sessionManager.getSessionId();
		const soon = setTimeout(claim, 0);
		const passive = process.env.PROVIDER_PASSIVE && role === "parent";
		const watcher = passive ? undefined : watch(box(self, "new"), () => claim());
		stop = () => {
			clearTimeout(soon);
			watcher?.close();
		};
	});
	pi.on("session_shutdown", () => stop());
}
