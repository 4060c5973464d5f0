import CommandLineKit

await CommandRunner.main(FerryCommand.specification)
