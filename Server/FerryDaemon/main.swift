import FerryCommandLine

await CommandRunner.main(DaemonCommands.root)
