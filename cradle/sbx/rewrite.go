package sbx

import (
	"github.com/nlnwa/whatwg-url/url"

	"pi-cradle/internal/jsjson"
)

// RewriteProviders returns a copy of providers in which a base URL on the host's own loopback is one that the guest can reach.
// Everything else is shared with the original.
func RewriteProviders(providers *jsjson.Object) *jsjson.Object {
	out := jsjson.NewObject()
	for _, name := range providers.Keys() {
		v, _ := providers.Get(name)
		if p, ok := v.(*jsjson.Object); ok {
			v = rewriteProvider(p)
		}
		out.Set(name, v)
	}
	return out
}

func rewriteProvider(p *jsjson.Object) *jsjson.Object {
	out := jsjson.NewObject()
	for _, key := range p.Keys() {
		v, _ := p.Get(key)
		if s, ok := v.(string); ok && key == "baseUrl" {
			v = rewriteURL(s)
		}
		out.Set(key, v)
	}
	return out
}

// rewriteURL follows the URL standard, not RFC 3986: it is what pi's own runtime makes of the text that decides.
func rewriteURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || !isLoopback(u.Hostname()) {
		return s
	}
	u.SetHostname(hostAlias)
	return u.Href(false)
}
