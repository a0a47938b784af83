package agent

// Demonstrate is for the tests outside of the package, which have a fake API.
var Demonstrate = demonstrate
