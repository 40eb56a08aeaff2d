// Completion holds, version 1: a table in this process in which other extensions say that a session is not done yet. We announce
// ourselves in it and read it; everything else in it belongs to others.
const KEY = Symbol.for("pi.completion-holds.v1");
const HOST = "pi-squire";

interface Table {
	version: 1;
	hosts: Map<string, Map<string, string>>;
	holds: Map<string, Map<string, { provider: string; ready: boolean }>>;
}

/** The table, undefined when there is none, null when what is there is no such table. */
function table(): Table | undefined | null {
	const found = (globalThis as Record<symbol, unknown>)[KEY] as Table | undefined;
	if (found === undefined) return undefined;
	return found?.version === 1 && found.hosts instanceof Map && found.holds instanceof Map ? found : null;
}

/** Announces that this session reads holds. A malformed table is left as it is. */
export function registerHost(session: string, token: string): void {
	const fresh: Table = { version: 1, hosts: new Map(), holds: new Map() };
	const found = table() === undefined ? fresh : table();
	if (!found) return;
	Object.assign(globalThis, { [KEY]: found });
	if (!found.hosts.has(session)) found.hosts.set(session, new Map());
	const hosts: unknown = found.hosts.get(session);
	if (hosts instanceof Map) hosts.set(HOST, token);
}

/** Takes the announcement back, unless somebody else has made a new one. */
export function unregisterHost(session: string, token: string): void {
	const hosts: unknown = table()?.hosts.get(session);
	if (!(hosts instanceof Map) || hosts.get(HOST) !== token) return;
	hosts.delete(HOST);
	if (hosts.size === 0) table()?.hosts.delete(session);
}

/** Whether something still holds up the session's completion, and what. */
export function completionHolds(session: string): { holds: "none" | "waiting" | "malformed"; hold?: string } {
	const found = table();
	if (found === undefined) return { holds: "none" };
	const hosts: unknown = found?.hosts.get(session) ?? new Map();
	const holds: unknown = found?.holds.get(session) ?? new Map();
	if (!found || !(hosts instanceof Map) || !(holds instanceof Map)) return { holds: "malformed" };
	if ([...hosts.values()].some((token) => typeof token !== "string")) return { holds: "malformed" };
	for (const [hold, state] of holds) {
		if (typeof state?.provider !== "string" || typeof state.ready !== "boolean")
			return { holds: "malformed", hold: String(hold) };
	}
	for (const [hold, state] of holds) if (!state.ready) return { holds: "waiting", hold: `${state.provider}: ${hold}` };
	return { holds: "none" };
}
