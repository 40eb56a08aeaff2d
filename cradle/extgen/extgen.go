// Package extgen writes the pi extensions that cradle generates. They are complete TypeScript modules of the agent's own pi.
package extgen

import (
	"strings"

	"pi-cradle/internal/jsjson"
)

// ProvidersFile and FallbackFile are the names of the generated files.
const (
	ProvidersFile = "providers.ts"
	FallbackFile  = "agent-browser-nono-fallback.ts"
)

const providersHead = `// Generated from the agent folder's models.json on every run. Edit that file, not this one.
import type { ExtensionAPI } from '@earendil-works/pi-coding-agent';

const providers = `

const providersTail = ` as const;

// pi assumes these for a models.json of its own, and wants them spelled out here.
const assumed = { reasoning: false, input: ['text'], contextWindow: 128000, maxTokens: 16384 };

export default function registerProviders(pi: ExtensionAPI): void {
	for (const [name, config] of Object.entries<any>(providers)) {
		const models = config?.models;
		const complete = (model: any) => (model?.id ? { name: model.id, ...assumed, ...model } : model);
		pi.registerProvider(name, Array.isArray(models) ? { ...config, models: models.map(complete) } : config);
	}
}
`

// Providers is an extension that registers each provider, in key order. The value goes in as JSON, which is TypeScript as well
// (a key "__proto__" excepted, which an object literal takes for the prototype).
func Providers(providers *jsjson.Object) string {
	var b strings.Builder
	b.WriteString(providersHead)
	b.WriteString(jsjson.Indent(providers))
	b.WriteString(providersTail)
	return b.String()
}

// Fallback is an extension for pi under nono. Its browser tool's own sandbox can't start inside another one on macOS, and its
// browser does not know the proxy through which nono lets connections out unless told by its own variable.
const Fallback = `// Generated on every sandboxed run. Do not edit.
import type { ExtensionAPI } from '@earendil-works/pi-coding-agent';

export default function configureAgentBrowserNonoEnvironment(_pi: ExtensionAPI): void {
	const env = process.env;
	if (process.platform === 'darwin') {
		const args = (env.AGENT_BROWSER_ARGS ?? '')
			.split(/[,\n]/)
			.map((arg) => arg.trim())
			.filter((arg) => arg !== '' && arg !== '--no-sandbox');
		env.AGENT_BROWSER_ARGS = [...args, '--no-sandbox'].join(',');
	}
	const proxy = env.HTTPS_PROXY || env.HTTP_PROXY;
	if (env.AGENT_BROWSER_PROXY === undefined && proxy) {
		env.AGENT_BROWSER_PROXY = proxy;
	}
}
`
