import FerryPlatform

/// Writes a fish completion script; it runs in fish 3.0 and later.
struct FishCompletion {
  let root: CommandSpec

  var script: String {
    let nodes = CompletionNode.all(of: root)
    let function = root.completionFunction
    return """
      # fish completion for \(root.name)
      # Which command is it, and how many arguments are there?
      function \(function)_place
        set -l words (commandline -opc)
        set -l path \(root.name.fishQuoted)
        set -l place 0
        set -l skips 0
        set -l ended 0
        for word in $words[2..-1]
          if test $skips = 1
            set skips 0
            continue
          end
          if test $ended = 1
            set place (math $place + 1)
            continue
          end
          switch "$path $word"
      \(valueOptions(nodes))
            case '* --'
              set ended 1
            case '* -*'
      \(descents(nodes))
            case '*'
              set place (math $place + 1)
          end
        end
        echo $path
        echo $place
        echo $ended
      end
      # Takes a place and a command: a number, a least number with +, or - for options.
      function \(function)_at
        set -l now (\(function)_place)
        test "$now[1]" = "$argv[2..-1]"; or return 1
        switch $argv[1]
          case '-'
            test $now[3] = 0
          case '+*'
            test $now[2] -ge (string sub -s 2 -- $argv[1])
          case '*'
            test $now[2] = $argv[1]
        end
      end
      function \(function)_names
        set -l words (commandline -opc)
        command $words[1] names $argv[1] -- $words 2>/dev/null
      end
      complete -c \(root.name.fishQuoted) -e
      complete -c \(root.name.fishQuoted) -f
      \(nodes.flatMap { lines(of: $0, function) }.joined(separator: "\n"))

      """
  }

  /// Returns the cases for options with the next word as the value.
  private func valueOptions(_ nodes: [CompletionNode]) -> String {
    let patterns = nodes.flatMap { node in
      node.options.flatMap(\.spellings).map { "\(node.path) \($0)".fishQuoted }
    }
    if patterns.isEmpty { return "      case ''" }
    return """
            case \(patterns.joined(separator: " "))
              set skips 1
      """
  }

  private func descents(_ nodes: [CompletionNode]) -> String {
    let patterns = nodes.dropFirst().map { $0.path.fishQuoted }
    if patterns.isEmpty { return "      case ''" }
    return """
            case \(patterns.joined(separator: " "))
              if test $place = 0
                set path "$path $word"
              else
                set place (math $place + 1)
              end
      """
  }

  private func lines(of node: CompletionNode, _ function: String) -> [String] {
    var lines = node.options.map { option in
      line(node, function, "-", names(option.name, option.short), option.help)
        + (action(option.kind, function).map { " \($0)" } ?? " -x")
    }
    for flag in node.flags {
      lines.append(line(node, function, "-", names(flag.name, flag.short), flag.help))
      if flag.isNegatable {
        lines.append(line(node, function, "-", names("no-\(flag.name)", nil), flag.help))
      }
    }
    lines.append(line(node, function, "-", names("help", "h"), "Show this help."))
    if root.version != nil, node.path == root.name {
      lines.append(line(node, function, "-", names("version", nil), "Show the version."))
    }
    lines += node.children.map { child in
      line(node, function, "0", "-a \(child.name.fishQuoted)", child.summary)
    }
    for (index, argument) in node.command.arguments.enumerated() where node.children.isEmpty {
      guard let action = action(argument.kind, function) else { continue }
      let place = argument.isRepeated ? "+\(index)" : "\(index)"
      lines.append(line(node, function, place, action, argument.help))
    }
    return lines
  }

  private func line(
    _ node: CompletionNode, _ function: String, _ place: String, _ rest: String, _ help: String
  ) -> String {
    let condition = "\(function)_at \(place) \(node.path)"
    return "complete -c \(root.name.fishQuoted) -n \(condition.fishQuoted) \(rest) "
      + "-d \(help.fishQuoted)"
  }

  private func names(_ name: String, _ short: Character?) -> String {
    "-l \(name)" + (short.map { " -s \($0)" } ?? "")
  }

  /// Returns the arguments of `complete` for a kind of values; `nil` if any text is one.
  private func action(_ kind: ValueKind, _ function: String) -> String? {
    switch kind {
    case .text, .integer, .duration, .byteSize: nil
    case .file: "-r -F"
    case .directory: "-x -a '(__fish_complete_directories (commandline -ct))'"
    case .choice(let words): "-x -a \(words.joined(separator: " ").fishQuoted)"
    case .listed(let list): "-x -a '(\(function)_names \(list))'"
    }
  }
}

extension String {
  /// The text as one word of fish.
  fileprivate var fishQuoted: String {
    // text: words of the program's own specification
    "'" + map { $0 == "'" || $0 == "\\" ? "\\\($0)" : "\($0)" }.joined() + "'"
  }
}
