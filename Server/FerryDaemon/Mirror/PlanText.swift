import FerryCommandLine
import FerryMirror
import FerryPlatform

/// The preview of a mirror for people and for programs.
extension MirrorPreview {
  /// - Parameters:
  ///   - width: the columns of the terminal; `nil` for as many as there are.
  ///   - isPresent: whether the mirror is there.
  ///   - command: the previewed command.
  func lines(width: Int?, isPresent: Bool, command: String) -> [String] {
    var lines: [String] = []
    if !tables.isEmpty {
      var shown = TextTable(["TABLE", "COLUMN", "IN POSTGRESQL", "ON DEVICES"])
      for table in tables {
        for column in table.columns {
          shown.append([table.name.text, column.name, column.type, column.deviceText])
        }
      }
      lines += shown.lines(width: width)
    }
    for table in tables {
      lines += table.lines(capture: capture, isPresent: isPresent)
    }
    if !spaces.isEmpty {
      var shown = TextTable(["VALUE", "SPACE", "ROWS", "REASON"])
      for space in spaces {
        shown.append([
          space.value ?? "NULL", space.name ?? "none", space.rows.grouped, space.reason ?? "",
        ])
      }
      lines += shown.lines(width: width)
    }
    if spaceExists == false { lines.append("space      \(space) is missing, and would be made") }
    lines.append("role       \(role.name)")
    if let warning = role.warning { lines.append("warning    \(warning)") }
    lines += notes.map { "note       \($0)" }
    lines += stops.map { "stopped    \($0)" }
    lines += faults.map { "refused    \($0)" }
    return lines + [verdict(isPresent: isPresent, command: command)]
  }

  private func verdict(isPresent: Bool, command: String) -> String {
    switch (isPresent, isPossible) {
    case (false, true): "next       ferryd mirror \(command) \(name) with these options"
    case (false, false):
      "refused    `ferryd mirror \(command) \(name)` would change nothing, for "
        + faults.count.counted("reason")
    case (true, true): "next       ferryd mirror run \(name)"
    case (true, false):
      "stopped    `ferryd mirror run \(name)` would carry no rows; "
        + MirrorStopped(name: name, stops: stops).wayOut
    }
  }

  var json: JSONText {
    .object([
      ("mirror", .string(name)), ("space", .string(space)), ("possible", .bool(isPossible)),
      ("spaceExists", spaceExists.map { .bool($0) } ?? .null),
      ("capture", .string(capture.rawValue)),
      ("role", .string(role.name)), ("warning", .string(orNull: role.warning)),
      ("refused", .array(faults.map { .string($0) })),
      ("stopped", .array(stops.map { .string($0.description) })),
      ("notes", .array(notes.map { .string($0) })),
      ("tables", .array(tables.map(\.json))), ("spaces", .array(spaces.map(\.json))),
    ])
  }
}

extension MirrorPreview.Column {
  fileprivate var deviceText: String {
    guard let device else { return "left out: \(reason ?? "it does not travel")" }
    // text: the type is one of six words
    return device.rawValue.uppercased() + (isKey ? ", key" : "") + (isNew ? ", new" : "")
  }

  fileprivate var json: JSONText {
    .object([
      ("column", .string(name)), ("type", .string(type)),
      ("device", .string(orNull: device?.rawValue)), ("key", .bool(isKey)), ("new", .bool(isNew)),
      ("reason", .string(orNull: reason)),
    ])
  }
}

extension MirrorPreview.Part {
  fileprivate var text: String {
    columns.isEmpty
      ? "" : " (\(columns.joined(separator: ", ")))" + (parent.map { " to \($0)" } ?? "")
  }

  fileprivate var json: JSONText {
    .object([
      ("kind", .string(kind)), ("columns", .array(columns.map { .string($0) })),
      ("parent", .string(orNull: parent)), ("reason", .string(orNull: reason)),
    ])
  }
}

extension MirrorPreview.Table {
  fileprivate func lines(capture: MirrorCapture, isPresent: Bool) -> [String] {
    var lines: [String] = []
    if let rows {
      lines.append(
        "rows       \(name): \(isPart ? "at most about" : "about") \(rows.grouped)")
    }
    switch definition {
    case .missing: lines.append("definition \(name): the space gets it")
    case .equal: lines.append("definition \(name): the space has it")
    case .other(let difference): lines.append("definition \(name): disagrees: \(difference)")
    case .followed(let changes): lines.append("definition \(name): is followed: \(changes)")
    case nil: break
    }
    for part in parts {
      lines.append(
        part.reason.map { "left out   \(name): \(part.kind)\(part.text): \($0)" }
          ?? "\(part.kind) \(name)\(part.text)")
    }
    if !isPresent {
      let way = capture == .log ? "PostgreSQL's log" : triggers.counted("trigger")
      lines.append("capture    \(name): \(isView ? "compared with a copy" : way)")
    }
    return lines
  }

  fileprivate var json: JSONText {
    let state: JSONText =
      switch definition {
      case .missing: .string("missing")
      case .equal: .string("equal")
      case .other: .string("other")
      case .followed: .string("followed")
      case nil: .null
      }
    var difference: String?
    switch definition {
    case .other(let text), .followed(let text): difference = text
    default: break
    }
    return .object([
      ("table", .string(name.text)), ("rows", .string(orNull: rows.map { String($0) })),
      ("conditional", .bool(isPart)), ("view", .bool(isView)), ("definition", state),
      ("difference", .string(orNull: difference)), ("triggers", .string(String(triggers))),
      ("columns", .array(columns.map(\.json))), ("parts", .array(parts.map(\.json))),
    ])
  }
}

extension MirrorPreview.Space {
  fileprivate var json: JSONText {
    .object([
      ("value", .string(orNull: value)), ("rows", .string(String(rows))),
      ("space", .string(orNull: name)), ("reason", .string(orNull: reason)),
    ])
  }
}
