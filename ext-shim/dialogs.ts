// What the helper asks the user. A terminal gets a list that shows details and can be narrowed by typing, and an editor that keeps its
// text when it is cancelled; everywhere else these are pi's plain dialogs.
import {
	DynamicBorder,
	type ExtensionContext,
	ExtensionEditorComponent,
	keyHint,
	type Theme,
} from "@earendil-works/pi-coding-agent";
import {
	type Component,
	Container,
	Editor,
	fuzzyFilter,
	getKeybindings,
	Input,
	Spacer,
	Text,
	truncateToWidth,
	visibleWidth,
} from "@earendil-works/pi-tui";
import { safeText } from "./paint.ts";
import type { DialogParams, DialogResult } from "./wire.gen.ts";

/** How many rows of a list are shown at once. */
const ROWS = 10;
const CANCELLED: DialogResult = { ok: false, value: "" };

interface Row {
	value: string;
	label: string;
	detail: string;
}

export async function ask(params: DialogParams, ctx: ExtensionContext, signal: AbortSignal): Promise<DialogResult> {
	const { kind, message, prefill } = params;
	const title = safeText(params.title);
	switch (kind) {
		case "confirm":
			return { ok: await ctx.ui.confirm(title, safeText(message), { signal }), value: "" };
		case "input":
			return answer(await ctx.ui.input(title, safeText(message), { signal }));
		case "editor":
			return ctx.mode === "tui" ? edit(title, prefill, ctx, signal) : answer(await ctx.ui.editor(title, prefill));
	}
	const rows = params.options.map((value, i) => row(value, params.details?.[i] ?? ""));
	if (ctx.mode === "tui") return pick(rows, params, ctx, signal);
	const lines = rows.map(({ label, detail }) => (detail ? `${label} — ${detail}` : label));
	const chosen = await ctx.ui.select(title, lines, { signal });
	return answer(chosen === undefined ? undefined : rows[lines.indexOf(chosen)]?.value);
}

/** A row of a list, which is one line whatever it holds. */
export function row(value: string, detail: string): Row {
	const line = (text: string) => safeText(text).replaceAll("\n", " ");
	return { value, label: line(value), detail: line(detail) };
}

function answer(value: string | undefined): DialogResult {
	return value === undefined ? CANCELLED : { ok: true, value };
}

function edit(title: string, prefill: string, { ui }: ExtensionContext, signal: AbortSignal): Promise<DialogResult> {
	return ui.custom<DialogResult>((tui, _theme, keybindings, done) => {
		const finish = once(done);
		const cancel = () => finish({ ok: false, value: editor?.getExpandedText() ?? "" });
		const submit = (value: string) => finish({ ok: true, value });
		const component = new ExtensionEditorComponent(tui, keybindings, title, prefill, submit, cancel);
		const editor = component.children.find((child): child is Editor => child instanceof Editor);
		signal.addEventListener("abort", cancel, { once: true });
		return component;
	});
}

function pick(rows: Row[], params: DialogParams, { ui }: ExtensionContext, signal: AbortSignal): Promise<DialogResult> {
	return ui.custom<DialogResult>((tui, theme, _keybindings, done) => {
		const finish = once(done);
		signal.addEventListener("abort", () => finish(CANCELLED), { once: true });
		const changed = () => tui.requestRender();
		return picker(rows, params, theme, changed, (value) => finish(answer(value)));
	});
}

/** pi's dialogs may end only once. */
function once<T>(done: (result: T) => void): (result: T) => void {
	let ended = false;
	return (result) => {
		if (!ended) done(result);
		ended = true;
	};
}

/** A list of rows, each on one line, for what does not fit is cut. With a filter, what is typed narrows it. */
export function picker(
	rows: Row[],
	{ title, filter, prefill }: DialogParams,
	theme: Theme,
	changed: () => void,
	end: (value: string | undefined) => void,
): Component {
	let shown = rows;
	let at = Math.max(
		0,
		rows.findIndex(({ value }) => value === prefill),
	);
	const input = filter ? new Input({ placeholder: "type to filter" }) : undefined;
	const list = (width: number): string[] => {
		if (shown.length === 0) return [truncateToWidth(theme.fg("muted", "   nothing matches"), width)];
		const first = Math.max(0, Math.min(at - ROWS / 2, shown.length - ROWS));
		const longest = Math.max(...shown.map(({ label }) => visibleWidth(label)));
		const column = Math.min(longest, Math.floor(width / 2));
		const lines = shown.slice(first, first + ROWS).map(({ label, detail }, i) => {
			const text = first + i === at ? theme.fg("accent", ` → ${label}`) : `   ${theme.fg("text", label)}`;
			const gap = " ".repeat(2 + Math.max(0, column - visibleWidth(label)));
			return truncateToWidth(detail ? text + gap + theme.fg("muted", detail) : text, width);
		});
		if (shown.length > ROWS) lines.push(truncateToWidth(theme.fg("muted", `   (${at + 1}/${shown.length})`), width));
		return lines;
	};
	const handleInput = (data: string): void => {
		const keys = getKeybindings();
		if (keys.matches(data, "tui.select.up")) at = at > 0 ? at - 1 : Math.max(0, shown.length - 1);
		else if (keys.matches(data, "tui.select.down")) at = at < shown.length - 1 ? at + 1 : 0;
		else if (keys.matches(data, "tui.select.cancel")) end(undefined);
		else if (keys.matches(data, "tui.select.confirm")) {
			const row = shown[at];
			if (row) end(row.value);
		} else if (input) {
			input.handleInput(data);
			shown = fuzzyFilter(rows, input.getValue(), ({ label, detail }) => `${label} ${detail}`);
			at = 0;
		}
		changed();
	};
	const container = new Container();
	container.addChild(new DynamicBorder());
	container.addChild(new Text(theme.fg("accent", theme.bold(safeText(title))), 1, 0));
	container.addChild(new Spacer(1));
	if (input) {
		input.focused = true;
		container.addChild(input);
	}
	container.addChild({ render: list, invalidate: () => {} });
	container.addChild(new Spacer(1));
	container.addChild(
		new Text(`${keyHint("tui.select.confirm", "select")}  ${keyHint("tui.select.cancel", "cancel")}`, 1, 0),
	);
	container.addChild(new DynamicBorder());
	return Object.assign(container, { handleInput });
}
