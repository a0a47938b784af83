package config

import "net/url"

// validIssuer reports whether the text is none, or a URL that identities may name as their issuer. Plain HTTP is for trying it out: clouds
// take https alone.
func validIssuer(text string) bool {
	if text == "" {
		return true
	}
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.RawQuery == "" && u.Fragment == "" && u.User == nil
}
