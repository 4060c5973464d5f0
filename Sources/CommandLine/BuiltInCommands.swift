extension CommandSpec {
  /// Adds `help` and `completion`, unless the command itself takes arguments.
  func withBuiltInCommands(output: TextOutput) -> CommandSpec {
    guard arguments.isEmpty else { return self }
    var root = self
    if !subcommands.isEmpty { root.subcommands.append(helpCommand) }
    root.subcommands.append(completionCommand(output: output))
    return root
  }

  /// Only for help texts and completion: the parser itself handles `help`.
  private var helpCommand: CommandSpec {
    let names = subcommands.filter { !$0.isHidden }.map(\.name)
    return CommandSpec(
      "help", summary: "Show the help of a command.",
      arguments: [
        ArgumentSpec("command", help: "The command.", kind: .choice(names), arity: .zeroOrMore)
      ]
    ) { _ in .done }
  }

  private func completionCommand(output: TextOutput) -> CommandSpec {
    CommandSpec(
      "completion", summary: "Print a script that completes this command in a shell.",
      arguments: [
        ArgumentSpec("shell", help: "The shell.", kind: .choice(Shell.allCases.map(\.rawValue)))
      ],
      examples: [
        ExampleSpec("In this bash, until it ends", "source <(\(name) completion bash)"),
        ExampleSpec(
          "In each new bash",
          "\(name) completion bash > ~/.local/share/bash-completion/completions/\(name)"),
        ExampleSpec(
          "In zsh, with a folder of your $fpath",
          "\(name) completion zsh > \"${fpath[1]}/_\(name)\""),
        ExampleSpec(
          "In fish", "\(name) completion fish > ~/.config/fish/completions/\(name).fish"),
      ]
    ) { arguments in
      guard let shell = Shell(rawValue: try arguments.string("shell")) else { return .usage }
      try output.write(withBuiltInCommands(output: output).completionScript(for: shell))
      return .done
    }
  }
}

/// A shell with completion scripts.
package enum Shell: String, Sendable, CaseIterable {
  case bash
  case zsh
  case fish
}

extension CommandSpec {
  /// Returns the script to complete this command and all below it, with a final newline.
  package func completionScript(for shell: Shell) -> String {
    switch shell {
    case .bash: BashCompletion(root: self).script
    case .zsh: ZshCompletion(root: self).script
    case .fish: FishCompletion(root: self).script
    }
  }

  /// The shell function's name: `_ferry_bench` for `ferry-bench`.
  var completionFunction: String {
    // text: the name of this program
    "_" + String(name.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
  }
}

/// A visible command with everything a completion script has to know about it.
struct CompletionNode {
  /// From the root down: `ferryd token create`.
  let path: String
  let command: CommandSpec
  /// Visible options, inherited ones included.
  let options: [OptionSpec]
  let flags: [FlagSpec]
  let children: [CommandSpec]

  /// Returns the command and all visible ones below it, parents first.
  static func all(of root: CommandSpec) -> [CompletionNode] {
    collect(root, above: nil)
  }

  private static func collect(
    _ command: CommandSpec, above: CompletionNode?
  ) -> [CompletionNode] {
    let node = CompletionNode(
      path: (above.map { $0.path + " " } ?? "") + command.name, command: command,
      options: (above?.options ?? []) + command.options.filter { !$0.isHidden },
      flags: (above?.flags ?? []) + command.flags.filter { !$0.isHidden },
      children: command.subcommands.filter { !$0.isHidden })
    return [node] + node.children.flatMap { collect($0, above: node) }
  }
}
