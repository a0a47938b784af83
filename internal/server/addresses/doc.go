// Package addresses is by which names and addresses an agent is called: where others dial it, for which names its own certificate is, and
// which names web pages may call it by.
//
// It reads the configuration, this machine's names and its interfaces, and starts no goroutines.
package addresses
