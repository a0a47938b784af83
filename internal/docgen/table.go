package main

import "strings"

// table is a markdown table that is built row by row.
type table struct {
	text strings.Builder
}

// newTable returns a table with its header only.
func newTable(columns ...string) *table {
	t := &table{}
	t.row(columns...)
	t.text.WriteString(strings.Repeat("|---", len(columns)) + "|\n")
	return t
}

// row adds a row; as many cells as there are columns are expected. Their text is escaped.
func (t *table) row(cells ...string) {
	for _, c := range cells {
		t.text.WriteString("| " + cell(c) + " ")
	}
	t.text.WriteString("|\n")
}

func (t *table) String() string { return t.text.String() }

// cell escapes what would end a cell.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(strings.TrimSpace(text))
}

// code marks text as code; nothing stays nothing.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
}

// sentence begins text with a capital letter and ends it with a full stop.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	if first := text[0]; first >= 'a' && first <= 'z' {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	if !strings.ContainsAny(text[len(text)-1:], ".!?") {
		text += "."
	}
	return text
}
