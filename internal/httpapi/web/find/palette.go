package find

import (
	"strings"

	"github.com/drover-project/drover/internal/httpapi/web/html"
	"github.com/drover-project/drover/internal/httpapi/web/parts"
)

// Box is the field of the bar that searches everything. The button beside it is for who has no keys; the script shows it.
func Box() html.Part {
	return html.Group(
		html.El("form", html.Class("find"), html.Attr("role", "search"), html.Attr("aria-label", Text.Words),
			html.Action(html.Path("ui", "search")),
			html.El("label", html.Class("away"), html.Attr("for", "find"), html.Text(Text.Words)),
			html.El("input", html.ID("find"), html.Attr("type", "search"), html.Attr("name", "q"), html.Attr("placeholder", Text.Search),
				html.Attr("autocomplete", "off"), html.Attr("spellcheck", "false"))),
		html.El("button", html.ID("palette-open"), html.Class("plain"), html.Attr("type", "button"), html.Flag("hidden", true),
			html.Attr("aria-haspopup", "dialog"), html.Text("Ctrl-K")))
}

// Palette is the command palette, which the script fills.
func Palette() html.Part {
	return html.El("dialog", html.ID("palette"), html.Attr("aria-label", Text.Palette),
		html.Attr("data-source", html.Path("ui", "search").String()), html.Attr("data-page-text", Text.Pages),
		html.Attr("data-action-text", Text.Actions), html.Attr("data-searching-text", Text.Searching), html.Attr("data-lost-text", Text.Lost),
		html.Attr("data-none-text", Text.None),
		html.El("label", html.Class("away"), html.Attr("for", "palette-words"), html.Text(Text.Palette)),
		html.El("input", html.ID("palette-words"), html.Attr("role", "combobox"), html.Attr("aria-expanded", "true"),
			html.Attr("aria-controls", "palette-list"), html.Attr("aria-autocomplete", "list"), html.Attr("placeholder", Text.PaletteMore),
			html.Attr("autocomplete", "off"), html.Attr("spellcheck", "false"), html.Attr("maxlength", "256")),
		html.El("ul", html.ID("palette-list"), html.Attr("role", "listbox"), html.Attr("aria-label", Text.Palette)),
		html.El("output", html.ID("palette-state"), html.Class("muted"), html.Attr("for", "palette-words")))
}

// KeyList lists the keys.
func KeyList() html.Part {
	rows := make([]html.Part, 0, len(Text.KeyList))
	for _, k := range Text.KeyList {
		var keys []html.Part
		for i, key := range strings.Split(k[0], " ") {
			keys = append(keys, html.If(i > 0, html.Text(" ")), html.El("kbd", html.Text(strings.TrimSuffix(key, ","))))
		}
		rows = append(rows, parts.Row(html.Group(keys...), html.Text(k[1])))
	}
	return html.El("dialog", html.ID("keys"), html.Attr("aria-labelledby", "keys-title"),
		html.El("h2", html.ID("keys-title"), html.Text(Text.Keys)), html.El("p", html.Text(Text.KeysMore)),
		html.El("p", html.El("input", html.ID("single-keys"), html.Class("box"), html.Attr("type", "checkbox"), html.Flag("checked", true)),
			html.El("label", html.Class("beside"), html.Attr("for", "single-keys"), html.Text(Text.SingleKeys))),
		parts.Table(Text.Keys, Text.KeyColumns, rows, parts.None),
		html.El("form", html.Attr("method", "dialog"), html.El("button", html.Text(Text.Close))))
}
