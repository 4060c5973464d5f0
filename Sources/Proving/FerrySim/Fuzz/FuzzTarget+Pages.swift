import FerryProtocol

extension FuzzTarget {
  /// A page of a pull list with all notices; changes that violate a rule leave the page.
  static let page = FuzzTarget(name: "page", fixtures: ["pages"]) { bytes in
    let first: Page
    do throws(MalformedMessage) { first = try Page(bytes) } catch { return kind(error.reason) }
    let written = first.encoded()
    do throws(MalformedMessage) {
      let same = try Page(written)
      guard !same.isEqual(to: first) || same.encoded() != written else {
        return "read \(magnitude(written.count)), \(magnitude(first.faults)) unreadable"
      }
    } catch {
      throw FuzzFinding("the written page is not read back: \(error)")
    }
    throw FuzzFinding("the written page is read back as another")
  }

  private struct Page {
    var head: PageHead
    var changes: [Change] = []
    var notices: [Notice]
    var faults = 0

    init(_ bytes: [UInt8]) throws(MalformedMessage) {
      var (changes, faults): ([Change], Int) = ([], 0)
      head = try bytes.withUnsafeBytes { buffer in
        Result { () throws(MalformedMessage) in
          try PageReader.read(
            buffer, limits: .standard, each: { changes.append($0) },
            unreadable: { _ in faults += 1 })
        }
      }.get()
      notices = try PageReader.notices(of: bytes, limits: .standard)
      (self.changes, self.faults) = (changes, faults)
      head.count = changes.count
    }

    func isEqual(to other: Page) -> Bool {
      head == other.head && changes == other.changes && notices == other.notices
    }

    func encoded() -> [UInt8] {
      var list = JSONWriter()
      for notice in notices {
        list.element()
        list.notice(notice)
      }
      var json = JSONWriter()
      json.beginPage(head, notices: list.finish())
      for change in changes {
        json.element()
        json.change(change)
      }
      json.endPage()
      return json.finish()
    }
  }

  /// A record's state: the JSON, or the damaged bytes of a store.
  static let state = FuzzTarget(
    name: "state",
    samples: [
      #"[{"sequence":"3","time":"0199c82cc0010000","device":"#
        + #""0199c306-6400-7000-800a-11ce00000001","kind":"insert","data":{"due":null,"photo":{"blob":"iVBORw=="},"weight":2.5}},"#
        + #"{"sequence":"8","time":"0199c82cc1f40000","device":"#
        + #""0199c368-0c00-7000-800b-0b0000000002","data":{"done":1}}]"#
    ]
  ) { bytes in
    let damaged = stored(bytes)
    let state: RecordState
    do throws(MalformedMessage) {
      state = try bytes.withUnsafeBytes { buffer in
        Result { () throws(MalformedMessage) in
          try RecordState(decoding: buffer, limits: .standard)
        }
      }.get()
    } catch {
      if case .success = damaged { return "read as stored" }
      return kind(error.reason)
    }
    guard case .success(let same) = stored(state.stored()), same == state else {
      throw FuzzFinding("the stored state is not read back")
    }
    return "read \(magnitude(state.stored().count))"
  }

  private static func stored(_ bytes: [UInt8]) -> Result<RecordState, MalformedMessage> {
    bytes.withUnsafeBytes { buffer in
      Result { () throws(MalformedMessage) in
        try RecordState(stored: buffer, limits: .standard)
      }
    }
  }
}
