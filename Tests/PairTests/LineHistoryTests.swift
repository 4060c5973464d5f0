import FerryCommand
import FerryTestSupport
import Foundation
import Testing

@Suite("The history of typed lines", .hangLimit)
struct LineHistoryTests {
  @Test("entries survive their file, with line breaks and backslashes")
  func entries() throws {
    let folder = try TemporaryDirectory()
    let file = HistoryFile(path: folder.file("a/b/history").path)
    #expect(file.entries(last: 10).isEmpty)
    let entries = ["SELECT 1;", "SELECT\n'a\\nb';", "\\", "ä 🚢"]
    for entry in entries { #expect(file.append(entry)) }
    #expect(file.entries(last: 10) == entries)
    #expect(file.entries(last: 2) == Array(entries.suffix(2)))
  }

  @Test("blank and huge entries are not kept")
  func ignored() throws {
    let folder = try TemporaryDirectory()
    let file = HistoryFile(path: folder.file("history").path)
    #expect(!file.append(" \n"))
    #expect(!file.append(String(repeating: "x", count: HistoryText.entryBytesMax + 1)))
    #expect(file.entries(last: 10).isEmpty)
  }

  @Test("the file and its folder are their owner's alone, also if they were others'")
  func mode() throws {
    let folder = try TemporaryDirectory()
    let path = folder.file("state/history").path
    func mode(_ path: String) throws -> Int? {
      try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }
    let file = HistoryFile(path: path)
    file.append("SELECT 1;")
    #expect(try mode(path) == 0o600)
    #expect(try mode(folder.file("state").path) == 0o700)
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
    file.append("SELECT 2;")
    #expect(try mode(path) == 0o600)
  }

  @Test("a damaged file loses only its damaged lines")
  func damaged() {
    #expect(HistoryText.entries("a;\nb\\x\n\nc\\\nd;\nunfinished", last: 10) == ["a;", "d;"])
  }

  @Test("a file that grew too large keeps its last entries")
  func shortened() throws {
    let folder = try TemporaryDirectory()
    let file = HistoryFile(path: folder.file("history").path)
    let long = String(repeating: "x", count: 60_000)
    for number in 0..<20 { #expect(file.append("\(number)\(long)")) }
    #expect(file.entries(last: 3).map { $0.prefix(2) } == ["17", "18", "19"])
    #expect(file.entries(last: 10).count == 3)
    let size = try FileManager.default.attributesOfItem(atPath: file.path)[.size] as? Int
    #expect((size ?? 0) < HistoryFile.bytesMax)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == ["history"])
  }

  @Test("the state folder of the user has an absolute path, or there is no history")
  func places() {
    func path(_ environment: [String: String]) -> String? {
      HistoryFile.ofUser(named: "sql_history", environment: environment)?.path
    }
    #expect(path(["XDG_STATE_HOME": "/s", "HOME": "/h"]) == "/s/ferry/sql_history")
    #expect(path(["XDG_STATE_HOME": "s", "HOME": "/h"]) == "/h/.local/state/ferry/sql_history")
    #expect(path(["HOME": "/h"]) == "/h/.local/state/ferry/sql_history")
    #expect(path(["HOME": ""]) == nil)
    #expect(path([:]) == nil)
  }

  @Test("a file that cannot be written is no error")
  func unwritable() {
    let file = HistoryFile(path: "/dev/null/history")
    #expect(!file.append("SELECT 1;"))
    #expect(file.entries(last: 1).isEmpty)
  }
}
