import assert from "node:assert/strict";
import { test } from "node:test";
import { Channel, type ChannelOptions, NoAnswer, RpcError } from "./channel.ts";
import { CODE_CANCELLED, CODE_TOO_LARGE, MAX_FRAME } from "./wire.gen.ts";

interface Frame {
	id?: number | string;
	method?: string;
	params?: unknown;
	result?: unknown;
	error?: { code: number; message: string };
}

function setUp(options: Partial<ChannelOptions> = {}) {
	const sent: Frame[] = [];
	const waits: boolean[] = [];
	const garbage: string[] = [];
	let wake = () => {};
	const channel = new Channel({
		send: (frame) => {
			assert.equal(frame.indexOf("\n"), frame.length - 1, "one frame is one line");
			sent.push(JSON.parse(frame));
			wake();
		},
		handle: () => undefined,
		onWaiting: (waiting) => waits.push(waiting),
		onGarbage: (line) => garbage.push(line),
		...options,
	});
	const receive = (...frames: unknown[]) =>
		channel.receive(Buffer.from(frames.map((frame) => `${JSON.stringify(frame)}\n`).join("")));
	/** Waits until so many frames have been sent. */
	const frames = async (count: number): Promise<Frame[]> => {
		while (sent.length < count) {
			await new Promise<void>((resolve) => {
				wake = resolve;
			});
		}
		return sent;
	};
	return { channel, sent, waits, garbage, receive, frames };
}

function rejection(promise: Promise<unknown>): Promise<Error> {
	return promise.then(
		() => assert.fail("should have failed"),
		(error) => error as Error,
	);
}

test("a call gets its answer, whatever the order, and holds the process only while it waits", async () => {
	const { channel, sent, waits, receive } = setUp();
	const first = channel.call("one", { a: 1 });
	const second = channel.call("two", {});
	assert.deepEqual(sent, [
		{ id: 1, method: "one", params: { a: 1 }, jsonrpc: "2.0" },
		{ id: 2, method: "two", params: {}, jsonrpc: "2.0" },
	]);
	receive({ id: 2, result: "b" }, { id: 1, result: "a" });
	assert.deepEqual(await Promise.all([first, second]), ["a", "b"]);
	assert.deepEqual(waits, [true, false]);
});

test("an error answer is an RpcError with code and data", async () => {
	const { channel, receive } = setUp();
	const call = channel.call("one", {});
	receive({ id: 1, error: { code: -32003, message: "no", data: { hints: ["try"] } } });
	const error = await rejection(call);
	assert.ok(error instanceof RpcError);
	assert.deepEqual([error.code, error.message, error.data], [-32003, "no", { hints: ["try"] }]);
});

test("frames come whole however the bytes are cut, and only byte 0x0A ends one", async () => {
	const text = "a\u2028b\u2029c\u0085d\u0000e\ud800f😀 中\r\n";
	const bytes = Buffer.from(`${JSON.stringify({ id: 1, result: text })}\n`.repeat(2).replace('"id":1', '"id":2'));
	for (let size = 1; size <= bytes.length; size++) {
		const { channel } = setUp();
		const calls = [channel.call("one", { text }), channel.call("two", {})];
		for (let at = 0; at < bytes.length; at += size) channel.receive(bytes.subarray(at, at + size));
		assert.deepEqual(await Promise.all(calls), [text, text]);
	}
});

test("whoever waited for an answer has seen it before the next frame is looked at", async () => {
	const order: string[] = [];
	const { channel, receive, frames } = setUp({
		handle: async () => {
			order.push("next");
		},
	});
	const call = channel.call("one", {}).then(() => order.push("answer"));
	receive({ id: 1, result: {} }, { id: 7, method: "host.tools", params: {} });
	await call;
	await frames(2);
	assert.deepEqual(order, ["answer", "next"]);
});

test("frames up to the limit pass both ways; larger ones fail by themselves and the next works", async () => {
	const { channel, sent, garbage, receive, frames } = setUp({ handle: async () => ({ fine: true }) });
	const frameOf = (pad: number) => ({ id: 1, result: "x".repeat(pad) });
	const overhead = JSON.stringify(frameOf(0)).length;
	const fits = channel.call("one", {});
	const bytes = Buffer.from(`${JSON.stringify(frameOf(MAX_FRAME - overhead))}\n`);
	channel.receive(bytes.subarray(0, -2));
	channel.receive(bytes.subarray(-2));
	assert.equal(((await fits) as string).length, MAX_FRAME - overhead);

	const answer = channel.call("two", {});
	receive({ ...frameOf(MAX_FRAME), id: 2 });
	assert.equal(((await rejection(answer)) as RpcError).code, CODE_TOO_LARGE);

	receive({ id: "big", method: "host.emit", params: "x".repeat(MAX_FRAME) }, { id: "next", method: "host.emit" });
	await frames(4);
	assert.deepEqual(
		sent.slice(2).map(({ id, error }) => [id, error?.code]),
		[
			["big", CODE_TOO_LARGE],
			["next", undefined],
		],
	);
	const tooLarge = await rejection(channel.call("three", "中".repeat(MAX_FRAME / 3 + 1)));
	assert.equal((tooLarge as RpcError).code, CODE_TOO_LARGE);
	channel.notify("four", "x".repeat(MAX_FRAME));
	assert.equal(sent.length, 4);
	assert.deepEqual(garbage, []);
});

test("an answer of ours that is too large, or no JSON, is an error answer", async () => {
	const circular: { self?: unknown } = {};
	circular.self = circular;
	const results = ["x".repeat(MAX_FRAME), circular];
	const { sent, receive, frames } = setUp({ handle: async () => results.shift() });
	receive({ id: 1, method: "a" }, { id: 2, method: "b" });
	await frames(2);
	assert.deepEqual(
		sent.map(({ error }) => error?.code),
		[CODE_TOO_LARGE, -32603],
	);
});

test("unknown methods are answered, handlers that throw too, notifications never", async () => {
	const { sent, receive, frames } = setUp({
		handle: (method) => {
			if (method === "unknown") return undefined;
			if (method === "throws") throw new Error("sync");
			return Promise.reject(new RpcError(-32005, "gone"));
		},
	});
	receive({ method: "throws" }, { method: "unknown" }, { method: "rejects" });
	receive({ id: 1, method: "unknown" }, { id: 2, method: "throws" }, { id: 3, method: "rejects" });
	await frames(3);
	assert.deepEqual(
		sent.map(({ id, error }) => [id, error?.code, error?.message]),
		[
			[1, -32601, 'unknown method "unknown"'],
			[2, -32603, "sync"],
			[3, -32005, "gone"],
		],
	);
});

test("cancel reaches a handler while it runs", async () => {
	const { receive, frames } = setUp({
		handle: (_method, _params, signal) =>
			new Promise((_resolve, reject) => {
				signal.addEventListener("abort", () => reject(new RpcError(CODE_CANCELLED, "cancelled")));
			}),
	});
	receive({ id: 5, method: "host.dialog" }, { method: "cancel", params: { id: 5 } });
	const [frame] = await frames(1);
	assert.equal(frame?.error?.code, CODE_CANCELLED);
});

test("an aborted call tells the other side and takes the answer, or gives up after a moment", async (t) => {
	t.mock.timers.enable({ apis: ["setTimeout"] });
	const { channel, sent, receive } = setUp();
	const controller = new AbortController();
	const answered = channel.call("one", {}, { signal: controller.signal });
	const ignored = channel.call("two", {}, { signal: controller.signal });
	controller.abort();
	assert.deepEqual(
		sent.slice(2).map(({ method, params }) => [method, params]),
		[
			["cancel", { id: 1 }],
			["cancel", { id: 2 }],
		],
	);
	receive({ id: 1, result: "late" });
	assert.equal(await answered, "late");
	t.mock.timers.tick(2000);
	assert.equal(((await rejection(ignored)) as RpcError).code, CODE_CANCELLED);
});

test("a call with a limit fails when it passes, and a late answer harms nobody", async (t) => {
	t.mock.timers.enable({ apis: ["setTimeout"] });
	const { channel, waits, garbage, receive } = setUp();
	const call = channel.call("slow", {}, { timeout: 2000 });
	t.mock.timers.tick(2000);
	const error = await rejection(call);
	assert.ok(error instanceof NoAnswer);
	assert.match(error.message, /"slow" within 2 s/);
	receive({ id: 1, result: {} });
	assert.deepEqual([waits, garbage], [[true, false], []]);
});

test("what is no message is reported", async () => {
	const { channel, garbage, receive, frames } = setUp({ handle: async () => ({}) });
	channel.receive(Buffer.from("panic: oh\n[1]\n\n"));
	receive({ id: 1, method: "still.here" });
	await frames(1);
	assert.deepEqual(garbage, ["panic: oh", "[1]"]);
});

test("closing fails what waits with the reason, stops what is served, and sends nothing more", async () => {
	const aborted: boolean[] = [];
	const { channel, sent, receive } = setUp({
		handle: (_method, _params, signal) => {
			signal.addEventListener("abort", () => aborted.push(true));
			return new Promise(() => {});
		},
	});
	receive({ id: 9, method: "host.dialog" });
	const call = channel.call("one", {});
	const reason = new Error("the helper was ended by SIGKILL");
	channel.close(reason);
	assert.equal(await rejection(call), reason);
	assert.equal(await rejection(channel.call("two", {})), reason);
	channel.notify("three", {});
	assert.deepEqual([sent.length, aborted], [1, [true]]);
});
