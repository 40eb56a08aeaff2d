// The floor of a result: a custom message that starts a run in the same process. /poke writes down when it sent it.
import { writeFileSync } from "node:fs";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

export default function (pi: ExtensionAPI) {
	pi.registerCommand("poke", {
		description: "Start a run",
		handler: async (args) => {
			const at = performance.timeOrigin + performance.now();
			pi.sendMessage(
				{ customType: "poke", content: `poke ${args}`, display: true },
				{ triggerTurn: true, deliverAs: "steer" },
			);
			writeFileSync(args.trim(), String(at));
		},
	});
}
