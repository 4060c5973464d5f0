import Ferry
import FerryCommandLine

/// `ferry name`: the name of the device.
enum NameCommand {
  /// The option of commands that may name this device.
  static let deviceName = OptionSpec(
    "name", value: "NAME", help: "This device's name, which other users see in conflicts.")

  static let name = CommandSpec(
    "name", summary: "Show or change this device's name.",
    discussion: """
      Other users see the name in conflicts instead of the device's identifier. It has 1 to 64 \
      characters. The next sync sends it. Without NAME, the command shows the name.
      """,
    flags: [FlagSpec("remove", help: "Remove the name.")],
    arguments: [ArgumentSpec("NAME", help: "The new name.", arity: .optional)],
    examples: [ExampleSpec("Name this device", "ferry name \"Ada's laptop\"")]
  ) { arguments in
    let new = arguments.stringIfPresent("NAME")
    let isRemoving = arguments.flag("remove")
    guard new == nil || !isRemoving else {
      throw UsageError(
        .unexpectedValue, "--remove and a name contradict each other",
        why: "a device has one name or none", next: "give one of them")
    }
    let replica = try await FerryCommand.open(arguments)
    if new != nil || isRemoving { try await replica.setDeviceName(new) }
    let status = try await replica.status()
    let output = TextOutput.standardOutput
    if arguments.flag("json") {
      try output.line(
        JSONText.object([
          ("device", .string("\(status.device)")), ("name", .string(orNull: status.deviceName)),
        ]).text)
      return .done
    }
    let later = new != nil || isRemoving ? "; the next sync sends the change" : ""
    try output.line(
      status.deviceName.map { "this device is \($0)\(later)" }
        ?? "this device has no name\(later)")
    return .done
  }
}
