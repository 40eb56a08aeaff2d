// Paints the helper's views with pi's theme. The helper lays out and makes text safe; here every line is held to the width it gets, for
// pi ends when one is wider, and nothing that came in as text leaves as an escape sequence.
import { getMarkdownTheme, type Theme } from "@earendil-works/pi-coding-agent";
import { type Component, Markdown, truncateToWidth, visibleWidth, wrapTextWithAnsi } from "@earendil-works/pi-tui";
import type { Block, Span, View } from "./wire.gen.ts";

type Color = Parameters<Theme["fg"]>[0];
type Background = Parameters<Theme["bg"]>[0];

const BACKGROUNDS: Record<string, Background> = {
	pending: "toolPendingBg",
	success: "toolSuccessBg",
	error: "toolErrorBg",
};
// Controls, halves of characters, and the marks that turn the direction of text around.
const UNSAFE = /[\p{Cc}\p{Cs}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** A component that paints lines for a width, and keeps them until the theme or the width changes. */
export function component(paint: (width: number) => string[]): Component {
	let kept: { width: number; lines: string[] } | undefined;
	return {
		render: (width) => {
			if (kept?.width !== width) kept = { width, lines: paint(width) };
			return kept.lines;
		},
		invalidate: () => {
			kept = undefined;
		},
	};
}

/** A tool's call, painted until its result has a view; `state` is what pi keeps for both. */
export function callRow(label: string, args: unknown, theme: Theme, state: { view?: boolean }): Component {
	const { agent, label: window, id, task } = (args ?? {}) as Record<string, unknown>; // they may still be arriving
	const title = (agent === undefined ? [label, id] : [agent, window])
		.filter((part) => typeof part === "string")
		.join(" ");
	const text = typeof task === "string" ? task : "";
	return component((width) => (state.view ? [] : paintCall(title, text, theme, width)));
}

/** A tool's result: its view in place of the call, or without one the text below it. */
export function resultRow(
	view: View | undefined,
	text: string,
	expanded: boolean,
	hint: string,
	theme: Theme,
	state: { view?: boolean },
): Component {
	state.view = view !== undefined;
	if (view) return component((width) => paintView(view, expanded, hint, theme, width));
	return component((width) => paintText(text, "error", theme, width));
}

/** A message of ours. */
export function messageRow(view: View, expanded: boolean, hint: string, pad: number, theme: Theme): Component {
	return component((width) => paintRow(view, expanded, hint, pad, theme, width));
}

/** The lines of a view. One with nothing to expand has no expanded blocks; otherwise the hint says how to expand it. */
export function paintView(view: View, expanded: boolean, hint: string, theme: Theme, width: number): string[] {
	const more = (view.expanded ?? []).length > 0;
	const blocks = expanded && more ? view.expanded : view.collapsed;
	const lines = (blocks ?? []).flatMap((block) => paintBlock(block, theme, width));
	if (more && !expanded && hint) lines.push(hint);
	return lines.map((line) => fit(line, width));
}

/** A row of its own: a view on its background, with a margin around it. */
export function paintRow(
	view: View,
	expanded: boolean,
	hint: string,
	pad: number,
	theme: Theme,
	width: number,
): string[] {
	const margin = Math.min(pad, Math.max(0, Math.floor((width - 1) / 2)));
	const lines = paintView(view, expanded, hint, theme, width - 2 * margin);
	const background = BACKGROUNDS[view.tone] ?? "toolPendingBg";
	return ["", ...lines, ""].map((line) => {
		const indented = line && " ".repeat(margin) + line;
		return theme.bg(background, indented + " ".repeat(Math.max(0, width - visibleWidth(indented))));
	});
}

/** A call that has no view yet: what is asked of whom, from arguments that may still be arriving. */
export function paintCall(title: string, task: string, theme: Theme, width: number): string[] {
	const lines = [theme.fg("toolTitle", theme.bold(safe(`○ ${title}`)))];
	const text = task.split("\n").filter((line) => line.trim());
	if (text[0]) lines.push(theme.fg("dim", safe(text[0])));
	if (text.length > 1) lines.push(theme.fg("dim", `(${task.split("\n").length} lines)`));
	return lines.map((line) => fit(line, width));
}

/** Text as it is, wrapped. */
export function paintText(text: string, color: Color, theme: Theme, width: number): string[] {
	const lines = text.split("\n").flatMap((line) => wrapTextWithAnsi(theme.fg(color, safe(line)), width));
	return lines.map((line) => fit(line, width));
}

function paintBlock(block: Block, theme: Theme, width: number): string[] {
	if (block.markdown !== undefined) {
		return [...new Markdown(safeText(block.markdown), 0, 0, getMarkdownTheme()).render(width)];
	}
	const line = (block.line ?? []).map((span) => paintSpan(span, theme)).join("");
	return block.wrap ? wrapTextWithAnsi(line, width) : [line];
}

function paintSpan(span: Span, theme: Theme): string {
	const text = span.bold ? theme.bold(safe(span.text)) : safe(span.text);
	try {
		return span.style ? theme.fg(span.style as Color, text) : text;
	} catch {
		return text; // a colour this theme does not know
	}
}

/** Text of several lines without anything that a terminal would act on. */
export function safeText(text: string): string {
	return text.split("\n").map(safe).join("\n");
}

function safe(text: string): string {
	return text.replaceAll("\t", "   ").replace(UNSAFE, " ");
}

/** Cuts a line to the width. A full reset in it would end the row's background, so it becomes a reset of all else. */
function fit(line: string, width: number): string {
	const cut = visibleWidth(line) > width ? truncateToWidth(line, width, "…") : line;
	return cut.replaceAll("\x1b[0m", "\x1b[22;23;24;39m");
}
