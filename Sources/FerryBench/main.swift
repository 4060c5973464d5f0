import CommandLineKit

await CommandRunner.main(BenchCommand.specification)
