package wire

// OpenFilesVariable, in drover-init's environment, is the soft limit of open files of the programs that it starts; without
// it that is 1024. The hard limit is its own.
const OpenFilesVariable = "DROVER_OPEN_FILES"
