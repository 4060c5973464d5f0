import CommandLineKit

await CommandRunner.main(ChaosCommand.specification)
