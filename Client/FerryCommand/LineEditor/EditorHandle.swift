import CFerryLineEditor

/// The handle of libedit, the history, and the state for callbacks. Everything runs on the thread
/// of ``LineEditor``.
final class EditorHandle {
  private let editor: OpaquePointer
  private let history: OpaquePointer
  private let keyboard: Keyboard
  private var prompt: UnsafeMutablePointer<CChar>?
  private var isCancelled = false

  init(program: String, keyboard: Keyboard) throws(LineEditorError) {
    ferry_el_use_utf8()
    guard let editor = ferry_el_open(program) else {
      throw LineEditorError(description: "the terminal cannot be opened for editing")
    }
    guard let history = history_init() else {
      el_end(editor)
      throw LineEditorError(description: "there is no memory for a history")
    }
    self.editor = editor
    self.history = history
    self.keyboard = keyboard
    ferry_history_set_size(history, Int32(LineEditor.entriesMax))
    // The callbacks find this object by address; it outlives the handle.
    ferry_el_set_client_data(editor, Unmanaged.passUnretained(self).toOpaque())
    ferry_el_set_prompt(editor) { editor in EditorHandle.of(editor)?.prompt }
    ferry_el_set_history(editor, history)
    ferry_el_set_editor(editor, "emacs")
    ferry_el_add_function(editor, "ferry-cancel", "Discard the input") { editor, _ in
      EditorHandle.of(editor)?.isCancelled = true
      return UInt8(CC_NEWLINE)
    }
    ferry_el_bind(editor, "^C", "ferry-cancel")
    ferry_el_bind(editor, "^R", "em-inc-search-prev")
    el_source(editor, nil)
    ferry_el_disable_signals(editor)
    ferry_el_set_reader(editor) { editor, character in
      guard let keyboard = EditorHandle.of(editor)?.keyboard, let character else { return -1 }
      guard let scalar = keyboard.next() else { return 0 }
      character.pointee = wchar_t(scalar.value)
      return 1
    }
  }

  deinit {
    el_end(editor)
    history_end(history)
    prompt?.deallocate()
  }

  /// Reads one line, and blocks meanwhile.
  func read(_ text: String) -> LineEditor.Input {
    prompt?.deallocate()
    prompt = Self.copy(of: text)
    isCancelled = false
    // The window may have another size since the last line.
    el_resize(editor)
    var count: Int32 = 0
    let line = el_gets(editor, &count)
    // A cancelled line without text looks like the end.
    if isCancelled {
      ferry_el_end_cancelled_line()
      return .cancelled
    }
    guard let line, count >= 0 else { return .end }
    let bytes = UnsafeRawBufferPointer(start: line, count: Int(count))
    let content = String(decoding: bytes, as: UTF8.self)
    return .line(content.start(before: "\n").map(String.init) ?? content)
  }

  func remember(_ entry: String) { ferry_history_enter(history, entry) }

  private static func of(_ editor: OpaquePointer?) -> EditorHandle? {
    ferry_el_client_data(editor).map { Unmanaged.fromOpaque($0).takeUnretainedValue() }
  }

  private static func copy(of text: String) -> UnsafeMutablePointer<CChar> {
    let characters = text.utf8CString
    let copy = UnsafeMutablePointer<CChar>.allocate(capacity: characters.count)
    for (index, character) in characters.enumerated() { copy[index] = character }
    return copy
  }
}
