// The mail this session takes over from a message:* provider. What is whose is data of the helper's; here it is only compared, and a
// claimed envelope written down, for the provider's event waits for no answer.
import { randomUUID } from "node:crypto";
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Claims, Inbound } from "./wire.gen.ts";

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
	const name = `${String(lastStamp).padStart(15, "0")}-${randomUUID()}.json`;
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
