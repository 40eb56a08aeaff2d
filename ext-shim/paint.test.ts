import assert from "node:assert/strict";
import { test } from "node:test";
import { initTheme, type Theme } from "@earendil-works/pi-coding-agent";
import { visibleWidth } from "@earendil-works/pi-tui";
import { component, paintCall, paintRow, paintText, paintView } from "./paint.ts";
import type { View } from "./wire.gen.ts";

initTheme("dark");
const theme = {
	fg: (color: string, text: string) => {
		if (color === "nope") throw new Error("Unknown theme color");
		return `\x1b[38;5;1m${text}\x1b[39m`;
	},
	bg: (color: string, text: string) => `<${color}>${text}</>`,
	bold: (text: string) => `\x1b[1m${text}\x1b[22m`,
} as unknown as Theme;

const NASTY = [
	"plain words that go on for quite a while, long enough to be cut or wrapped at most of the widths there are",
	"中文字符很宽所以要小心处理".repeat(8),
	"👨‍👩‍👧‍👦👍🏽🇩🇪".repeat(12),
	"e\u0301\u0327".repeat(60),
	"tab\tand\ttab",
	"\x1b[31mred\x1b[0m \x1b]8;;http://evil\x07link\x1b]8;;\x07 \x9b2J \x07 \r overwritten \x00 \x7f",
	"\ud800 lone \udc00 halves \u202e backwards \u2028 and \u2029",
	`https://example.org/${"x".repeat(300)}`,
	"",
];
// The only escapes that may leave: colours and attributes.
const SGR = new RegExp(`${"\x1b"}\\[[0-9;]*m`, "g");

function check(lines: readonly string[], width: number, what: string): void {
	for (const line of lines) {
		const shown = line.replace(/<\w+>|<\/>/g, "");
		assert.ok(visibleWidth(shown) <= width, `${what} at ${width}: ${JSON.stringify(line)}`);
		assert.doesNotMatch(shown.replace(SGR, ""), /[\p{Cc}\p{Cs}\u2028\u2029\u202e]/u, `${what} at ${width}`);
		assert.ok(!shown.includes("\x1b[0m"), `${what} at ${width} resets the background`);
	}
}

const view: View = {
	tone: "success",
	collapsed: NASTY.map((text) => ({
		line: [
			{ text: "✓ ", style: "success", bold: true },
			{ text, style: "nope" },
		],
	})),
	expanded: [
		...NASTY.map((text) => ({ line: [{ text, style: "dim" }], wrap: true })),
		...NASTY.map((text) => ({
			markdown: `# ${text}\n\n- ${text}\n\n> ${text}\n\n| a | b |\n|---|---|\n| ${text} | x |\n`,
		})),
		{ markdown: `\`\`\`js\n${NASTY.join("\n")}\n\`\`\`` },
		{},
	],
};

test("every line fits, at widths from 1 to 250, and nothing that came in as text leaves as an escape", () => {
	const widths = [...Array.from({ length: 25 }, (_, i) => i + 1), 39, 40, 79, 80, 81, 120, 199, 200, 250];
	for (const width of widths) {
		check(paintView(view, false, "ctrl+o to expand", theme, width), width, "view");
		check(paintRow(view, true, "ctrl+o to expand", 1, theme, width), width, "row");
		for (const text of NASTY) {
			check(paintCall(text, `${text}\n${text}\nlast`, theme, width), width, "call");
			check(paintText(`${text}\n${text}`, "error", theme, width), width, "text");
		}
	}
});

test("a row is filled to its width with the background of its tone", () => {
	const short: View = { tone: "error", collapsed: [{ line: [{ text: "hi" }] }], expanded: [] };
	assert.deepEqual(paintRow(short, false, "", 1, theme, 6), [
		"<toolErrorBg>      </>",
		"<toolErrorBg> hi   </>",
		"<toolErrorBg>      </>",
	]);
	assert.match(paintRow({ ...short, tone: "new" }, false, "", 0, theme, 3)[0] ?? "", /^<toolPendingBg>/);
});

test("a view is expanded only where there is more, and says so", () => {
	const plain = (lines: string[]) => lines.map((line) => line.replace(SGR, ""));
	const more: View = { tone: "success", collapsed: [{ line: [{ text: "a" }] }], expanded: [{ line: [{ text: "b" }] }] };
	assert.deepEqual(plain(paintView(more, false, "hint", theme, 10)), ["a", "hint"]);
	assert.deepEqual(plain(paintView(more, false, "", theme, 10)), ["a"]);
	assert.deepEqual(plain(paintView(more, true, "hint", theme, 10)), ["b"]);
	const less: View = { ...more, expanded: [] };
	assert.deepEqual(plain(paintView(less, false, "hint", theme, 10)), ["a"]);
	assert.deepEqual(plain(paintView(less, true, "hint", theme, 10)), ["a"]);
});

test("a call shows whom, the first line of the task, and how many there are", () => {
	const plain = paintCall("scout first", "\n Find it \nand more\n", theme, 40).map((line) => line.replace(SGR, ""));
	assert.deepEqual(plain, ["○ scout first", " Find it ", "(4 lines)"]);
	assert.equal(paintCall("scout", "", theme, 40).length, 1);
	assert.equal(paintCall("scout", "one", theme, 40).length, 2);
});

test("lines are painted once per width, and again after a change of theme", () => {
	let painted = 0;
	const row = component((width) => [`${width}${painted++}`]);
	assert.equal(row.render(5), row.render(5));
	assert.equal(painted, 1);
	row.render(6);
	row.invalidate();
	row.render(6);
	assert.equal(painted, 3);
});
