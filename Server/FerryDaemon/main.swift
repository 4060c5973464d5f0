import CommandLineKit

await CommandRunner.main(DaemonCommands.root)
