import CommandLineKit

await CommandRunner.main(SimCommand.specification)
