import assert from "node:assert/strict";
import { test } from "node:test";
import { initTheme, type Theme } from "@earendil-works/pi-coding-agent";
import { visibleWidth } from "@earendil-works/pi-tui";
import { picker, row } from "./dialogs.ts";

initTheme("dark");
const theme = { fg: (_: string, text: string) => text, bold: (text: string) => text } as unknown as Theme;
// What pi itself puts in: colours, and a reset after what it cuts.
const SGR = new RegExp(`${"\x1b"}\\[[0-9;]*m`, "g");
const DOWN = "\x1b[B";
const UP = "\x1b[A";

function open(values: string[], { filter = false, prefill = "", details = [] as string[] } = {}) {
	const ended: (string | undefined)[] = [];
	const params = { kind: "select", title: "Which one?", message: "", options: values, prefill, filter };
	const rows = values.map((value, i) => row(value, details[i] ?? ""));
	const list = picker(
		rows,
		params,
		theme,
		() => {},
		(value) => ended.push(value),
	);
	const type = (...keys: string[]) => {
		for (const key of keys) list.handleInput?.(key);
	};
	const marked = () => list.render(60).find((line) => line.includes("→")) ?? "";
	return { list, type, marked, ended };
}

test("the list begins where it was left, goes round at its ends, and gives the row's value", () => {
	const { type, marked, ended } = open(["a", "b", "c"], { prefill: "b" });
	assert.match(marked(), /→ b/);
	type(DOWN, DOWN);
	assert.match(marked(), /→ a/);
	type(UP);
	assert.match(marked(), /→ c/);
	type("x", "\r");
	assert.deepEqual(ended, ["c"]);
});

test("escape leaves without a value", () => {
	const { type, ended } = open(["a"]);
	type("\x1b");
	assert.deepEqual(ended, [undefined]);
});

test("a filter narrows the rows, and what matches nothing can't be taken", () => {
	const values = Array.from({ length: 40 }, (_, i) => `provider/model-${i}`);
	const { list, type, marked, ended } = open(values, { filter: true });
	assert.ok(list.render(60).some((line) => line.includes("(1/40)")));
	type(..."del-37");
	assert.match(marked(), /→ provider\/model-37/);
	type(..."zzz", "\r");
	assert.ok(list.render(60).some((line) => line.includes("nothing matches")));
	assert.deepEqual(ended, []);
});

test("no line is wider than asked, and none has a break or a control in it", () => {
	const nasty = [
		"中文字符很宽".repeat(20),
		"x".repeat(300),
		"two\nlines",
		"\x1b[31mred\x07",
		"",
		"👨‍👩‍👧‍👦".repeat(30),
	];
	const details = [...nasty].reverse();
	for (let width = 1; width <= 120; width++) {
		for (const line of open(nasty, { filter: true, details }).list.render(width))
			assert.ok(visibleWidth(line) <= width);
		for (const line of open(nasty, { details }).list.render(width)) {
			assert.ok(visibleWidth(line) <= width, `at ${width}: ${JSON.stringify(line)}`);
			assert.doesNotMatch(line.replace(SGR, ""), /\p{Cc}/u);
		}
	}
});
