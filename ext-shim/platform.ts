// Where the helper's binary is: a ladder of places, each of which says in a sentence why it is not there.
import { accessSync, constants, existsSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const NAME = "cradle-helper";

/** HelperMissing says where the helper was looked for, and what to type. */
export class HelperMissing extends Error {}

/**
 * Finds the binary; `from` is the URL of a file of this package's `ext-shim` folder. CRADLE_HELPER is taken at its word: when it is
 * set, no other place is looked at.
 */
export function findHelper(from: string, env: NodeJS.ProcessEnv = process.env): string {
	const checkout = dirname(dirname(fileURLToPath(from)));
	const built = join(checkout, "bin", NAME);
	const platformPackage = `pi-cradle-${process.platform}-${process.arch}`;
	const named = env.CRADLE_HELPER;
	if (named) {
		const flaw = flawOf(named);
		if (!flaw) return named;
		throw new HelperMissing(`CRADLE_HELPER names "${named}", which ${flaw}. Correct it, or type: unset CRADLE_HELPER`);
	}
	const rungs: [sentence: string, path: string | undefined][] = [
		[`the package "${platformPackage}" is not installed`, inPackage(from, platformPackage)],
		[`there is no "${built}"`, existsSync(built) ? built : undefined],
		[`"${NAME}" is not on PATH`, onPath(env.PATH)],
	];
	const sentences = ["CRADLE_HELPER is not set"];
	for (const [sentence, path] of rungs) {
		const flaw = path && flawOf(path);
		if (path && !flaw) return path;
		sentences.push(path ? `"${path}" ${flaw}` : sentence);
	}
	throw new HelperMissing(`its helper was not found: ${sentences.join("; ")}. Type: ${installCommand(from)}`);
}

/** What to type for a helper that fits this extension. */
export function installCommand(from: string): string {
	const checkout = dirname(dirname(fileURLToPath(from)));
	return existsSync(join(checkout, "go.mod")) ? `make -C '${checkout}' build` : "pi install npm:pi-cradle";
}

/** How to start this same pi: a script under Node, or a program of its own. */
export function piCommand(): string[] {
	const script = process.argv[1] ?? "";
	const compiled = /\$bunfs|~BUN/.test(script) || process.getBuiltinModule("node:sea")?.isSea();
	return compiled ? [process.execPath] : [process.execPath, ...process.execArgv, script];
}

function flawOf(path: string): string | undefined {
	try {
		const file = statSync(path);
		if (!file.isFile()) return "is not a file";
		if (file.size === 0) return "is empty";
		accessSync(path, constants.X_OK);
		return undefined;
	} catch (error) {
		return (error as NodeJS.ErrnoException).code === "EACCES" ? "is not executable" : "does not exist";
	}
}

function inPackage(from: string, name: string): string | undefined {
	try {
		return join(dirname(createRequire(from).resolve(`${name}/package.json`)), "bin", NAME);
	} catch {
		return undefined;
	}
}

function onPath(path = ""): string | undefined {
	return path
		.split(delimiter)
		.map((folder) => join(folder, NAME))
		.find((file) => flawOf(file) === undefined);
}
