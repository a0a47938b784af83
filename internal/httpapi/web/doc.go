// Package web is the face of people with a browser: the page at /ui/, rendered here and of use without JavaScript.
//
// It can do nothing that the public API cannot. Each page asks the API, in this process and with the viewer's token, so that rights,
// limits, relays and the audit are the API's. It holds no rules about jobs or runners.
//
// A request runs in the server's goroutine for it; a live log has one more, which ends with it.
package web
