package parts

import (
	"strings"

	"github.com/drover-project/drover/internal/httpapi/web/html"
)

// Texts that several packages say.
const (
	Failed    = "That did not work"
	Forbidden = "Your token may not do this"
	BadForm   = "The form could not be read"
	Terminal  = "Terminal"
	Cut       = "The connection is lost, and the program ended with it."
	Command   = "Command"
)

// Hint explains a label.
func Hint(words string) html.Part {
	return html.El("span", html.Class("muted hint"), html.Text(words))
}

// Hidden is a field of a form that nobody sees.
func Hidden(name, value string) html.Part {
	return html.El("input", html.Attr("type", "hidden"), html.Attr("name", name), html.Attr("value", value))
}

// Button sends its form, which has 1 under its name then.
func Button(class, name, words string) html.Part {
	return html.El("button", html.Class(class), html.ID(name), html.Attr("name", name), html.Attr("value", "1"), html.Text(words))
}

// Area is a field of several lines of code.
func Area(id, name, rows, value string) html.Part {
	return html.El("textarea", html.ID(id), html.Class("code"), html.Attr("name", name), html.Attr("rows", rows), html.Attr("dir", "auto"),
		html.Attr("spellcheck", "false"), html.Attr("autocapitalize", "off"), html.Attr("autocomplete", "off"), html.Text(value))
}

// Lines are those of a form, which browsers end by CR and LF, as programs expect them.
func Lines(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// Notice is a message with a tone: "bad", "warn" or "idle".
func Notice(tone, title, more string) html.Part {
	return html.El("div", html.Class("notice "+tone), html.Attr("role", "alert"), html.El("strong", html.Text(title)),
		html.El("p", html.Text(more)))
}
