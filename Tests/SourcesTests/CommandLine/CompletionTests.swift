import FerryCommandLine
import FerryTestSupport
import Foundation
import Testing

@Suite("Completion in a real bash", .hangLimit)
struct CompletionTests {
  /// Makes a folder with two files and a folder, and runs the script printed by `completion bash`.
  private static func completions(of words: [String]) async throws -> [String] {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(
      at: folder.appending(path: "data"), withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await fill(folder, shell: "bash")
    return try await bash(
      """
      source ./.script && complete -p ferry >/dev/null || exit 9
      COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ferry
      (( ${#COMPREPLY[@]} )) && printf '%s\\n' "${COMPREPLY[@]}"; exit 0
      """, words, in: folder)
  }

  /// Writes two files, the script of a shell, and a program to list names and the program's
  /// arguments.
  private static func fill(_ folder: URL, shell: String) async throws {
    for name in ["dump one.csv", "dump.json"] {
      try Data().write(to: folder.appending(path: name))
    }
    let script = Collected()
    let runner = CommandRunner(Sample.ferry(), output: script.output)
    #expect(await runner.run(["completion", shell]) == 0)
    try script.text.write(
      to: folder.appending(path: ".script"), atomically: true, encoding: .utf8)
    let program = folder.appending(path: "ferry").path
    try """
    #!/bin/sh
    printf '%s\\n' tasks 'two words' '$(touch injected)' "$*"
    """.write(toFile: program, atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program)
  }

  private static func bash(
    _ script: String, _ words: [String], in folder: URL
  ) async throws -> [String] {
    let finished = try await ChildProcess.run(
      URL(filePath: "/bin/bash"), ["--norc", "-c", script, "bash"] + words, directory: folder)
    #expect(finished.status == .exited(0))
    #expect(finished.error == "")
    return finished.output.split(separator: "\n").map(String.init)
  }

  @Test(
    "commands, options, values and files are completed in their places",
    arguments: [
      (["ferry", ""], ["init", "import", "track", "log", "token", "help", "completion"]),
      (["ferry", "i"], ["init", "import"]),
      (["ferry", "--replica", "x.db", "to"], ["token"]),
      (["ferry", "--replica=x.db", "to"], ["token"]),
      (["ferry", "--replica", "=", "x.db", "to"], ["token"]),
      (["ferry", "token", ""], ["create"]),
      (["ferry", "--"], ["--replica", "--json", "--no-json", "--verbose", "--help", "--version"]),
      (["ferry", "log", "--l"], ["--limit"]),
      (["ferry", "log", "tasks", "--r"], ["--replica"]),
      (["ferry", "token", "create", "--role", ""], ["reader", "writer", "admin"]),
      (["ferry", "token", "create", "--role", "=", "w"], ["writer"]),
      (["ferry", "token", "create", "--role", "="], ["reader", "writer", "admin"]),
      (["ferry", "-r", "dump"], ["dump one.csv", "dump.json"]),
      (["ferry", "log", "-r", "da"], ["data"]),
      (["ferry", "log", "--into", "d"], ["data"]),
      (["ferry", "import", "tasks", "dump."], ["dump.json"]),
      (["ferry", "import", "d"], []),
      (["ferry", "import", "log", "dump."], ["dump.json"]),
      (["ferry", "log", "--limit", ""], []),
      (["ferry", "track", "--", "--"], []),
      (["ferry", "help", "t"], ["track", "token"]),
      (["ferry", "help", "track", "l"], ["log"]),
      (["ferry", "completion", ""], ["bash", "zsh", "fish"]),
    ])
  func completes(words: [String], expected: [String]) async throws {
    #expect(Set(try await Self.completions(of: words)) == Set(expected))
  }

  @Test("names come from the program itself, and none of them is run")
  func names() async throws {
    let all = try await Self.completions(of: ["./ferry", "-r", "x.db", "track", ""])
    #expect(
      all == [
        "tasks", "two\\ words", "\\$\\(touch\\ injected\\)",
        "names\\ tables\\ --\\ ./ferry\\ -r\\ x.db\\ track\\ ",
      ])
    #expect(try await Self.completions(of: ["./ferry", "track", "a", "ta"]) == ["tasks"])
    #expect(try await Self.completions(of: ["./ferry", "track", "*"]).isEmpty)
  }

  @Test(
    "fish completes commands, options, values, files and names",
    .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/fish")),
    arguments: [
      ("ferry ", ["init", "import", "track", "log", "token", "help", "completion"]),
      ("ferry i", ["init", "import"]), ("ferry --replica x.db to", ["token"]),
      ("ferry -r x.db token ", ["create"]), ("ferry log --l", ["--limit"]),
      ("ferry token create --role ", ["reader", "writer", "admin"]),
      ("ferry token create --role=w", ["--role=writer"]),
      ("ferry import tasks dump.", ["dump.json"]), ("ferry log --into d", ["data/"]),
      ("ferry log --limit ", []), ("ferry completion f", ["fish"]),
      ("./ferry track t", ["tasks", "two words"]), ("./ferry track a b ta", ["tasks"]),
    ])
  func fish(line: String, expected: [String]) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(
      at: folder.appending(path: "data"), withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await Self.fill(folder, shell: "fish")
    let finished = try await ChildProcess.run(
      URL(filePath: "/usr/bin/fish"),
      ["--no-config", "-c", "source ./.script; complete -C $argv[1]", line],
      environment: ["HOME": folder.path, "PATH": "/usr/bin:/bin"], directory: folder)
    #expect(finished.status == .exited(0))
    #expect(finished.error == "")
    // Each line is a word and a description.
    let words = finished.output.split(separator: "\n").map { $0.split(separator: "\t")[0] }
    #expect(Set(words.map(String.init)) == Set(expected))
    #expect(!FileManager.default.fileExists(atPath: folder.appending(path: "injected").path))
  }

  @Test("the script leaves nothing behind in the shell but its functions")
  func leavesNothing() async throws {
    let names = try await Self.bash(
      """
      before=$(compgen -v); eval "$1"
      COMP_WORDS=(ferry lo); COMP_CWORD=1; _ferry
      compgen -v | grep -vxF -e "$before" -e before -e COMPREPLY; exit 0
      """, [Sample.ferry().completionScript(for: .bash)],
      in: FileManager.default.temporaryDirectory)
    #expect(Set(names).isSubset(of: ["BASH_REMATCH", "COMP_CWORD", "COMP_WORDS", "PIPESTATUS"]))
  }

  @Test("the zsh script describes every visible command and option")
  func zsh() {
    let script = Sample.ferry().completionScript(for: .zsh)
    #expect(script.hasPrefix("#compdef ferry\n"))
    #expect(script.contains("'init:Make the file a replica.'"))
    #expect(
      script.contains("'(-r --replica)'{-r+,--replica=}'[The replica'\\''s file.]:FILE:_files'"))
    #expect(script.contains("'--role=''[What it may do.]:ROLE:(reader writer admin)'"))
    #expect(script.contains("_ferry__token__create()"))
    #expect(!script.contains("secret"))
    #expect(!script.contains("trace"))
  }

  @Test("a program's name becomes a valid function name")
  func functionName() {
    let spec = CommandSpec("ferry-bench", summary: "Measure.") { _ in .done }
    #expect(spec.completionScript(for: .bash).contains("complete -F _ferry_bench ferry-bench\n"))
  }
}
