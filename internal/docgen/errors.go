package main

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
)

// errorCodes lists the closed set of codes in the order of their declaration.
func errorCodes(root string) (string, error) {
	s, err := parseSource(root)
	if err != nil {
		return "", err
	}
	rows := newTable("Code", "HTTP status", "Meaning")
	for i, comment := range s.constantComments("Code") {
		c := drover.Code(i)
		status := httpapi.Status(drover.Errorf(c, "x"))
		rows.row(code(c.String()), fmt.Sprintf("%d %s", status, http.StatusText(status)), sentence(comment))
	}
	return "# Error codes\n\n" +
		"Every error has one of these codes. The set is closed: clients may branch on it. The native API and the fleet's answer\n" +
		"`{\"code\":\"…\",\"message\":\"…\"}`, the Nomad face answers the message as plain text, and Poseidon's face " +
		"`{\"message\":\"…\"}` and\n" +
		"what else its clients know. In Go, `drover.CodeOf(err)` returns the code of an error of package `client`.\n\n" +
		rows.String() +
		"\nThe command line exits with 3 for `not_found`, with 2 for `invalid`, and with 1 for every other code; its other exit codes are in\n" +
		"[the reference of the command line](cli.md). A path that is known with another method is answered with " +
		strconv.Itoa(http.StatusMethodNotAllowed) + ".\n", nil
}
