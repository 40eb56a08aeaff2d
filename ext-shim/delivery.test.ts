import assert from "node:assert/strict";
import { test } from "node:test";
import { Delivery } from "./session.ts";
import type { SendParams } from "./wire.gen.ts";

const view = { tone: "success", collapsed: [], expanded: [] };
const message = (id: string, trigger = true): SendParams => ({
	id,
	content: id,
	details: {},
	view,
	trigger,
	hidden: false,
});

/** A pi that is idle or busy, and keeps what it is sent unless it is told to lose it. */
function setUp() {
	const pi = {
		idle: true,
		loses: false,
		throws: false,
		entries: new Set<string>(),
		sent: [] as [string, boolean][],
		watching: false,
	};
	const delivery = new Delivery({
		idle: () => pi.idle,
		send: ({ id }, trigger) => {
			if (pi.throws) throw new Error("compacting");
			pi.sent.push([id, trigger]);
			if (trigger) pi.idle = false;
			else if (!pi.loses) pi.entries.add(id);
		},
		holds: (id) => pi.entries.has(id),
		watch: (waiting) => {
			pi.watching = waiting;
		},
	});
	const done: string[] = [];
	const deliver = (...messages: SendParams[]) => {
		for (const item of messages) {
			delivery.deliver(item).then(
				() => done.push(item.id),
				(error) => done.push(`${item.id}: ${error.message}`),
			);
		}
	};
	const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
	return { pi, delivery, done, deliver, settle };
}

test("an idle pi gets a message at once, and it counts when it starts", async () => {
	const { pi, delivery, done, deliver, settle } = setUp();
	deliver(message("a"));
	await settle();
	assert.deepEqual([pi.sent, done, pi.watching], [[["a", true]], [], true]);
	delivery.started("other");
	delivery.started("a");
	await settle();
	assert.deepEqual([done, pi.watching], [["a"], false]);
});

test("without a run it counts when it is among the entries, and fails when it is not", async () => {
	const { pi, done, deliver, settle } = setUp();
	deliver(message("a", false));
	pi.loses = true;
	deliver(message("b", false));
	await settle();
	assert.deepEqual(done, ["a", "b: pi did not take the message"]);
});

test("while pi is busy nothing is sent; a boundary takes everything, each once", async () => {
	const { pi, delivery, done, deliver, settle } = setUp();
	deliver(message("a"), message("b"), message("c", false));
	assert.deepEqual(pi.sent, [["a", true]], "the first starts a run, so that the others find pi busy");
	delivery.started("a");
	assert.deepEqual(
		delivery.offer().map(({ id }) => id),
		["b", "c"],
	);
	for (const id of ["b", "c"]) pi.entries.add(id);
	assert.deepEqual(delivery.offer(), []);
	await settle();
	assert.deepEqual(done, ["a", "b", "c"]);
	assert.equal(pi.sent.length, 1);
});

test("what a boundary refused is offered again", async () => {
	const { pi, delivery, done, deliver, settle } = setUp();
	pi.idle = false;
	deliver(message("a"));
	assert.equal(delivery.offer().length, 1);
	delivery.confirm();
	assert.equal(delivery.offer().length, 1);
	pi.entries.add("a");
	delivery.confirm();
	await settle();
	assert.deepEqual(done, ["a"]);
});

test("a run that fails gives way to one of ours; a run that was stopped does not", async () => {
	for (const [aborted, expected] of [
		[false, ["a", true]],
		[true, ["a", false]],
	] as const) {
		const { pi, delivery, deliver } = setUp();
		pi.idle = false;
		deliver(message("a"));
		pi.idle = true;
		delivery.settled(aborted);
		assert.deepEqual(pi.sent, [expected]);
	}
});

test("a message that found pi compacting goes out when pi is idle again", async () => {
	const { pi, delivery, deliver } = setUp();
	pi.idle = false;
	deliver(message("a"));
	delivery.pump();
	assert.deepEqual(pi.sent, []);
	pi.idle = true;
	delivery.pump();
	assert.deepEqual(pi.sent, [["a", true]]);
});

test("what pi throws, loses or leaves behind is an error, so that the helper tries again", async (t) => {
	const { pi, delivery, done, deliver, settle } = setUp();
	pi.throws = true;
	deliver(message("thrown"));
	pi.throws = false;
	t.mock.timers.enable({ apis: ["Date"] });
	deliver(message("lost"));
	pi.idle = true;
	delivery.pump();
	await settle();
	assert.deepEqual(done, ["thrown: compacting"], "a run may take a while to begin");
	t.mock.timers.tick(6000);
	delivery.pump();
	pi.idle = false;
	deliver(message("stale"));
	delivery.drop(new Error("gone"));
	await settle();
	assert.deepEqual(done.slice(1), ["lost: pi did not take the message", "stale: gone"]);
	assert.equal(pi.watching, false);
});

test("a lost helper takes back only what pi has not been handed", async () => {
	const { delivery, pi, deliver, done, settle } = setUp();
	pi.loses = true;
	deliver(message("handed"));
	pi.idle = false;
	deliver(message("held"));
	delivery.forget(new Error("gone"));
	await settle();
	assert.deepEqual(done, ["held: gone"]);
	let decided = false;
	const waiting = delivery.decided().then(() => {
		decided = true;
	});
	await settle();
	assert.equal(decided, false);
	delivery.started("handed");
	await waiting;
	assert.deepEqual(done, ["held: gone", "handed"]);
});
