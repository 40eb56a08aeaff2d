import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { findHelper, HelperMissing, installCommand } from "./platform.ts";
import { Helper } from "./spawn.ts";
import { VERSION } from "./wire.gen.ts";

// A helper that answers every call with its name and process, and obeys what a call asks for.
const ANSWERS = `
	const send = (frame) => process.stdout.write(JSON.stringify(frame) + "\\n");
	let rest = "";
	process.stdin.on("data", (chunk) => {
		rest += chunk;
		for (let end; (end = rest.indexOf("\\n")) >= 0; rest = rest.slice(end + 1)) {
			const { id, method, params } = JSON.parse(rest.slice(0, end));
			if (method === "die") { console.error("last words"); process.exit(7); }
			if (method === "kill") process.kill(process.pid, "SIGKILL");
			if (method === "junk") console.log("junk");
			if (method === "session.shutdown") require("fs").appendFileSync(process.argv[1] + ".told", params.reason);
			if (id !== undefined && method !== "junk") send({ id, result: { method, version: ${JSON.stringify(VERSION)}, pid: process.pid } });
		}
	});
	process.stdin.on("end", () => process.exit(0));
`;

function setUp(t: TestContext, body: string) {
	const folder = mkdtempSync(join(tmpdir(), "shim-"));
	const path = join(folder, "cradle-helper");
	const write = (text: string, interpreter = process.execPath) => {
		writeFileSync(path, `#!${interpreter}\n${text}`);
		chmodSync(path, 0o755);
	};
	write(body);
	const notices: string[] = [];
	const lost: boolean[] = [];
	const log = join(folder, "log", "helper.log");
	const helper = new Helper({
		find: () => path,
		remedy: "make build",
		handle: () => undefined,
		notice: (text) => notices.push(text),
		log,
		lost: () => lost.push(helper.isUp),
	});
	t.after(async () => {
		await helper.close("quit");
		rmSync(folder, { recursive: true });
	});
	return { helper, path, notices, lost, log, write };
}

function failure(promise: Promise<unknown>): Promise<string> {
	return promise.then(
		() => assert.fail("should have failed"),
		(error) => (error as Error).message,
	);
}

const pidOf = async (helper: Helper) => ((await (await helper.connect()).call("who", {})) as { pid: number }).pid;

function lives(pid: number): boolean {
	try {
		process.kill(pid, 0);
		return true;
	} catch {
		return false;
	}
}

test("a helper is started once, told when it ends, and gone afterwards", async (t) => {
	const { helper, path, notices } = setUp(t, ANSWERS);
	assert.equal(helper.isUp, false);
	const [first, second] = await Promise.all([helper.connect(), helper.connect()]);
	assert.equal(first, second);
	assert.equal(helper.isUp, true);
	const pid = await pidOf(helper);
	await helper.close("reload");
	assert.equal(readFileSync(`${path}.told`, "utf8"), "reload");
	assert.equal(lives(pid), false);
	assert.deepEqual(notices, []);
});

test("a crash fails the call with the reason, is noticed once with the last words, and the next use starts anew", async (t) => {
	const { helper, notices, lost, log } = setUp(t, ANSWERS);
	const channel = await helper.connect();
	const pid = await pidOf(helper);
	const reason = "the helper ended with exit code 7, after writing:\nlast words";
	assert.equal(await failure(channel.call("die", {})), reason);
	assert.deepEqual(notices, [`squire: ${reason}\nIt is started again when it is needed.`]);
	assert.equal(helper.isUp, false);
	assert.deepEqual(lost, [false]);
	assert.notEqual(await pidOf(helper), pid);
	assert.equal(readFileSync(log, "utf8"), "last words\n");
	assert.equal(statSync(log).mode & 0o777, 0o600);
});

test("three crashes in a minute are enough", async (t) => {
	const { helper, notices } = setUp(t, ANSWERS);
	for (let i = 0; i < 3; i++) {
		assert.match(await failure((await helper.connect()).call("kill", {})), /was ended by SIGKILL/);
	}
	assert.equal(notices.length, 3);
	assert.match(notices[2] ?? "", /^squire is off: the helper was ended by SIGKILL\nThen type: \/reload$/);
	assert.match(await failure(helper.connect()), /^squire is off/);
});

test("a helper that ends before it has said a word is tried again at once, then given up with one notice", async (t) => {
	const { helper, notices } = setUp(t, `console.error("no " + process.argv[2]); process.exit(3)`);
	const message = await failure(helper.connect());
	assert.equal(message, "squire is off: the helper ended with exit code 3, after writing:\nno serve\nType: make build");
	assert.deepEqual(notices, [`${message}\nThen type: /reload`]);
	assert.equal(await failure(helper.connect()), message);
});

test("one that starts at the second try is as good as any", async (t) => {
	const flag = `require("fs").existsSync(process.argv[1] + ".tried")`;
	const first = `if (!${flag}) { require("fs").writeFileSync(process.argv[1] + ".tried", ""); process.exit(1); }`;
	const { helper, notices } = setUp(t, first + ANSWERS);
	await pidOf(helper);
	assert.deepEqual(notices, []);
});

for (const [name, body, expected] of [
	[
		"writes garbage",
		`console.log("hello"); ${ANSWERS}`,
		/wrote something that is no message: "hello"\. Type: make build$/,
	],
	[
		"is of another version",
		ANSWERS.replaceAll(JSON.stringify(VERSION), '"0.0.0"'),
		/extension is version ".*is version "0\.0\.0"/,
	],
	[
		"refuses the version",
		ANSWERS.replace("send({ id, result", 'send({ id, error: { code: -32001, message: "mine is 9" }, x'),
		/mine is 9/,
	],
] as const) {
	test(`a helper that ${name} is given up at once, with one notice`, async (t) => {
		const { helper, notices } = setUp(t, body);
		assert.match(await failure(helper.connect()), expected);
		assert.equal(notices.length, 1);
		assert.equal(helper.isUp, false);
	});
}

test("a helper that does not answer is given up", async (t) => {
	const { helper, notices } = setUp(t, "process.stdin.resume()");
	t.mock.timers.enable({ apis: ["setTimeout"] });
	const connected = failure(helper.connect());
	t.mock.timers.tick(3000);
	assert.match(await connected, /does not answer\. Type: make build$/);
	assert.equal(notices.length, 1);
	t.mock.timers.reset();
});

for (const [name, act] of [
	["deaf", "exec 0<&-"],
	["mute", "exec >/dev/null"],
] as const) {
	test(`a helper that goes ${name} is ended, and its waiting calls with it`, async (t) => {
		const { helper, notices, write } = setUp(t, "");
		const hello = JSON.stringify({ id: 1, result: { version: VERSION } });
		write(`read line\necho '${hello}'\n${act}\nexec sleep 1000\n`, "/bin/sh");
		const channel = await helper.connect();
		const waiting = failure(channel.call("who", {}));
		while (notices.length === 0) {
			channel.notify("poke", {});
			await new Promise((resolve) => setImmediate(resolve));
		}
		assert.equal(await waiting, "the helper closed its end of the pipe");
		assert.equal(helper.isUp, false);
	});
}

test("garbage from a helper that was up ends it, and its waiting calls", async (t) => {
	const { helper, notices } = setUp(t, ANSWERS);
	const pid = await pidOf(helper);
	assert.match(await failure((await helper.connect()).call("junk", {})), /no message: "junk"/);
	while (notices.length === 0) await new Promise((resolve) => setImmediate(resolve));
	assert.match(await failure(helper.connect()), /^squire is off: .*"junk"/);
	assert.equal(lives(pid), false);
	assert.equal(notices.length, 1);
});

test("the process lives for as long as an answer is awaited, and not a moment longer for the helper's sake", async (t) => {
	const { path } = setUp(t, ANSWERS);
	const script = `
		import { Helper } from ${JSON.stringify(new URL("spawn.ts", import.meta.url).href)};
		const find = () => ${JSON.stringify(path)};
		const helper = new Helper({ find, remedy: "", handle() {}, notice() {}, lost() {}, log: "/nonexistent/log" });
		const { pid } = await (await helper.connect()).call("who", {});
		console.log(pid);
	`;
	const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script]);
	const pid = Number(stdout);
	assert.ok(pid > 0, stdout);
	while (lives(pid)) await new Promise((resolve) => setImmediate(resolve));
});

test("a helper that will not go is killed", async (t) => {
	const { helper } = setUp(t, ANSWERS.replace("process.exit(0)", "setInterval(() => {}, 1000)"));
	const pid = await pidOf(helper);
	await helper.close("quit");
	assert.equal(lives(pid), false);
});

test("closing while it starts leaves nothing behind", async (t) => {
	const { helper, notices } = setUp(t, ANSWERS);
	const connected = failure(helper.connect());
	await helper.close("quit");
	await connected;
	assert.deepEqual([helper.isUp, notices], [false, []]);
});

test("a binary that can't be run is given up with the reason", async (t) => {
	const { helper, notices } = setUp(t, "");
	const missing = new Helper({
		find: () => "/nonexistent/cradle-helper",
		remedy: "make build",
		handle: () => undefined,
		notice: (text) => notices.push(text),
		log: "/nonexistent/log",
		lost: () => assert.fail("it was never up"),
	});
	assert.match(
		await failure(missing.connect()),
		/"\/nonexistent\/cradle-helper" can't be run: .*ENOENT.*Type: make build/,
	);
	assert.equal(notices.length, 1);
	await missing.close("quit");
	assert.equal(helper.isUp, false);
});

test("the ladder: each rung says why it is not the one", (t) => {
	const folder = mkdtempSync(join(tmpdir(), "shim-"));
	t.after(() => rmSync(folder, { recursive: true }));
	const from = pathToFileURL(join(folder, "ext-shim", "index.ts")).href;
	const put = (path: string, mode = 0o755, text = "x") => {
		const file = join(folder, path);
		writeFileSync(file, text, { flag: "w" });
		chmodSync(file, mode);
		return file;
	};
	const message = (env: NodeJS.ProcessEnv) => {
		try {
			return findHelper(from, env);
		} catch (error) {
			assert.ok(error instanceof HelperMissing);
			return error.message;
		}
	};
	const nothing = message({ PATH: "" });
	for (const part of ["CRADLE_HELPER is not set", `"pi-cradle-${process.platform}-${process.arch}" is not installed`])
		assert.ok(nothing.includes(part), nothing);
	assert.match(
		nothing,
		/no ".*\/bin\/cradle-helper"; "cradle-helper" is not on PATH\. Type: pi install npm:pi-cradle$/,
	);
	put("go.mod", 0o644);
	assert.equal(installCommand(from), `make -C '${folder}' build`);

	const onPath = put("cradle-helper");
	assert.equal(findHelper(from, { PATH: `/nonexistent:${folder}` }), onPath);
	for (const [file, flaw] of [
		["/nonexistent", "does not exist"],
		[folder, "is not a file"],
		[put("empty", 0o755, ""), "is empty"],
	] as const) {
		assert.ok(
			message({ CRADLE_HELPER: file, PATH: folder }).startsWith(`CRADLE_HELPER names "${file}", which ${flaw}.`),
		);
	}
	assert.equal(findHelper(from, { CRADLE_HELPER: onPath }), onPath);
});
