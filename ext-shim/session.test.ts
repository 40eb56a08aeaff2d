import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
	attempt,
	claimed,
	completionHolds,
	ownerFolder,
	readClaims,
	registerHost,
	Session,
	stage,
	unregisterHost,
} from "./session.ts";

const claims = { requests: { r1: "scout-id" }, parent: "parent-id" };

test("a session takes the answers it waits for, and its parent's tasks, and nothing else", () => {
	const cases: [boolean, unknown][] = [
		[true, { kind: "reply", from: "scout-id", in_reply_to: ["r0", "r1"] }],
		[true, { from: "scout-id", in_reply_to: ["r1"] }],
		[false, { kind: "reply", from: "somebody", in_reply_to: ["r1"] }],
		[false, { kind: "reply", from: "scout-id", in_reply_to: ["r2"] }],
		[false, { kind: "reply", from: "scout-id", in_reply_to: ["toString"] }],
		[false, { kind: "reply", from: "scout-id" }],
		[false, { kind: "message", from: "scout-id", in_reply_to: ["r1"] }],
		[true, { kind: "request", from: "parent-id", in_reply_to: [] }],
		[true, { from: "parent-id" }],
		[false, { kind: "ask", from: "parent-id" }],
		[false, { kind: "request", from: "scout-id" }],
		[false, { kind: "request", from: "" }],
		[false, null],
		[false, "text"],
	];
	for (const [expected, envelope] of cases) assert.equal(claimed(claims, envelope), expected, JSON.stringify(envelope));
	assert.equal(claimed({ requests: {}, parent: "" }, { kind: "request", from: "" }), false);
});

test("claims that are missing or broken are none", (t) => {
	const agentDir = mkdtempSync(join(tmpdir(), "shim-"));
	t.after(() => rmSync(agentDir, { recursive: true }));
	const folder = ownerFolder(agentDir, "a/../b");
	assert.equal(folder, join(agentDir, "squire", "owners", "a%2F..%2Fb"));
	const none = { requests: {}, parent: "" };
	assert.deepEqual(readClaims(folder), none);
	mkdirSync(folder, { recursive: true });
	for (const [text, expected] of [
		["{", none],
		["{}", none],
		[JSON.stringify(claims), claims],
	] as const) {
		writeFileSync(join(folder, "claims.json"), text);
		assert.deepEqual(readClaims(folder), expected);
	}
});

test("staged envelopes are private, whole, and sort by arrival", (t) => {
	const root = mkdtempSync(join(tmpdir(), "shim-"));
	t.after(() => rmSync(root, { recursive: true }));
	const folder = join(root, "owners", "me", "inbound");
	const names = Array.from({ length: 50 }, (_, i) =>
		stage(folder, { envelope: { id: `${i}\u2028` }, path: "/p", requests: [] }),
	);
	assert.deepEqual(readdirSync(folder), [...names].sort());
	assert.deepEqual([...names].sort(), names);
	const bodies = names.map((name) => JSON.parse(readFileSync(join(folder, name), "utf8")).envelope.id);
	assert.deepEqual(
		bodies,
		names.map((_, i) => `${i}\u2028`),
	);
	assert.equal(statSync(folder).mode & 0o777, 0o700);
	assert.equal(statSync(join(folder, names[0] ?? "")).mode & 0o777, 0o600);
});

test("completion holds are read as the table has them", (t) => {
	const key = Symbol.for("pi.completion-holds.v1");
	const globals = globalThis as { [key]?: unknown };
	t.after(() => delete globals[key]);
	const read = (table: unknown) => {
		globals[key] = table;
		return completionHolds("me").holds;
	};
	const entry = (value: unknown, session = "me") => new Map([[session, new Map([["h", value]])]]);
	const table = (holds: unknown, hosts: unknown = new Map(), version: unknown = 1) => ({ version, hosts, holds });
	assert.equal(read(undefined), "none");
	assert.equal(read(table(new Map())), "none");
	assert.equal(read(table(entry({ provider: "p", ready: true }))), "none");
	assert.equal(read(table(entry({ provider: "p", ready: false }))), "waiting");
	assert.equal(read(table(entry({ provider: "p", ready: false }, "other"))), "none");
	assert.equal(read(table(entry({ provider: "p" }))), "malformed");
	assert.equal(read(table(entry(null))), "malformed");
	assert.equal(read(table(new Map([["me", []]]))), "malformed");
	assert.equal(read(table(new Map(), new Map([["me", new Map([["x", 1]])]]))), "malformed");
	assert.equal(read(table(new Map(), {})), "malformed");
	assert.equal(read(table(new Map(), new Map(), 2)), "malformed");
	assert.equal(read(null), "malformed");
});

test("our host is announced and taken back, and nobody else's", (t) => {
	const key = Symbol.for("pi.completion-holds.v1");
	const globals = globalThis as { [key]?: { hosts: Map<string, Map<string, string>> } };
	t.after(() => delete globals[key]);
	registerHost("me", "t1");
	assert.equal(globals[key]?.hosts.get("me")?.get("pi-squire"), "t1");
	globals[key]?.hosts.get("me")?.set("other", "x");
	registerHost("me", "t2");
	unregisterHost("me", "t1");
	assert.equal(globals[key]?.hosts.get("me")?.get("pi-squire"), "t2");
	unregisterHost("me", "t2");
	assert.deepEqual([...(globals[key]?.hosts.get("me") ?? [])], [["other", "x"]]);
	const foreign = { version: 3 };
	Object.assign(globals, { [key]: foreign });
	registerHost("me", "t3");
	unregisterHost("me", "t3");
	assert.deepEqual(globals[key], { version: 3 });
});

test("prompts are submitted in turn: after pi has started, not beside one another, and not while it compacts", async () => {
	let idle = false;
	const ctx = { sessionManager: { getSessionId: () => "me" }, isIdle: () => idle } as unknown as Session["ctx"];
	const session = new Session(ctx, "startup", "/nonexistent", () => ({
		idle: () => idle,
		send: () => {},
		holds: () => false,
		watch: () => {},
	}));
	const submitted: string[] = [];
	let wake = () => {};
	const submit = (name: string) =>
		session.inTurn(() => {
			submitted.push(name);
			session.submittedUntil = Number.POSITIVE_INFINITY;
			wake();
		});
	const next = () =>
		new Promise<void>((resolve) => {
			wake = resolve;
		});
	const seen = next();
	const first = submit("first");
	const second = submit("second");
	const failed = session.inTurn(() => assert.fail("gone")).catch((error: Error) => error.message);
	session.open();
	assert.deepEqual(submitted, [], "pi compacts");
	idle = true;
	await seen;
	assert.deepEqual(submitted, ["first"], "its run has not begun");
	const seenToo = next();
	idle = false;
	Object.assign(session, { running: true, submittedUntil: 0 });
	await Promise.all([first, seenToo, second]);
	session.submittedUntil = 0;
	assert.equal(await failed, "gone");
	assert.deepEqual(submitted, ["first", "second"]);
	const stale = () => assert.fail("stale");
	assert.equal(attempt(stale, 7), 7);
});
