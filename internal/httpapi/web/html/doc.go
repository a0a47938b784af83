// Package html writes HTML from Go values. What is not markup cannot become markup. Texts and values of attributes are escaped
// where they enter, and addresses are made of escaped parts. There is no way to write a script, a style or a handler of events
// into a page.
//
// It stands in for html/template, which has the linker keep every exported method of the binary. It starts no goroutines.
package html
