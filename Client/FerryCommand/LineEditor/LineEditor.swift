import CFerryLineEditor
import FerryPlatform

/// Lines typed by a user on the terminal of this process, with editing and a history (libedit).
///
/// Use it only if standard input and output are terminals. The keys are those of Emacs; a file
/// `~/.editrc` changes them (editrc(5)).
///
/// ```swift
/// let editor = LineEditor(program: "ferry", history: ["SELECT 1;"])
/// while case .line(let line) = await editor.read(prompt: "> ") { print(line) }
/// ```
package actor LineEditor {
  /// The user's answer to a prompt.
  package enum Input: Sendable, Equatable {
    /// A line without the line end.
    case line(String)
    /// Ctrl-C: the text is discarded.
    case cancelled
    /// Ctrl-D on an empty line, a closed terminal, or the cancellation of the task.
    case end
  }

  /// The most entries within reach of the arrow keys.
  package static let entriesMax = 1_000

  private nonisolated let executor = ThreadExecutor(name: "line-editor")
  private nonisolated let keyboard: Keyboard
  private let handle: EditorHandle

  /// The thread on which libedit waits for keys.
  package nonisolated var unownedExecutor: UnownedSerialExecutor {
    executor.asUnownedSerialExecutor()
  }

  /// Prepares the terminal; it changes only while a line is read.
  ///
  /// - Parameters:
  ///   - program: the name in `~/.editrc`.
  ///   - history: former entries, oldest first; the last ``entriesMax`` count.
  /// - Throws: ``LineEditorError`` if the terminal cannot be used.
  package init(program: String, history: [String] = []) throws(LineEditorError) {
    let keyboard = try Keyboard(descriptor: 0)
    self.keyboard = keyboard
    handle = try EditorHandle(program: program, keyboard: keyboard)
    for entry in history.suffix(Self.entriesMax) { handle.remember(entry) }
  }

  /// Prompts for a line and returns it. Waits on a separate thread.
  package nonisolated func read(prompt: String) async -> Input {
    await withTaskCancellationHandler {
      await edit(prompt)
    } onCancel: {
      keyboard.close()
    }
  }

  /// Adds an entry, which may have several lines, to the history of this process.
  package func remember(_ entry: String) { handle.remember(entry) }

  private func edit(_ prompt: String) -> Input { handle.read(prompt) }
}

/// The reason why a line editor cannot be used.
package struct LineEditorError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The reason.
  package let description: String
}
