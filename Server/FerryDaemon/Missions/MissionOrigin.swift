import FerryCommandLine
import FerryMissionServer
import FerryProtocol
import Foundation

/// The source of a published mission: it decides which advice an error gives.
struct MissionOrigin: Sendable {
  /// As it was named on the command line.
  let path: String
  let isFolder: Bool

  /// Reads the path; throws if nothing is there.
  init(_ path: String) throws(CommandFailure) {
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
      throw CommandFailure(
        "\(path) cannot be published", why: "there is no such file or folder",
        next: "name a manifest or a folder", code: "no_such_file")
    }
    (self.path, self.isFolder) = (path, isFolder.boolValue)
  }

  /// Returns the reason why it is no mission, with the file and the place in it.
  func failure(_ error: MissionDraftError) -> CommandFailure {
    CommandFailure(
      isFolder
        ? "the folder \(path) cannot be published" : "the manifest \(path) cannot be published",
      why: error.description,
      next: isFolder
        ? "rename, move or remove the file named above, or correct the option, and publish again"
        : "correct the manifest; `ferryd mission publish --help` describes it",
      code: "invalid_mission")
  }

  /// Returns the failure for the answer of a server or store to the publication. Content known only
  /// by hash cannot be sent from here: publishing again would end in the same way.
  func failure(_ problem: Problem, of draft: MissionDraft) -> CommandFailure {
    var failure = problem.commandFailure
    guard problem.code == .contentMismatch, draft.namesContentByHash else { return failure }
    failure.next =
      "content that \(path) names by `sha256` only must exist in the space with this `size`: give "
      + "the item a `file` or a `url`, or first publish a mission with this content"
    return failure
  }
}

extension MissionDraft {
  /// True if an item names content of the server only by hash.
  var namesContentByHash: Bool {
    items.contains { item in
      if case .known(_, let isHosted) = item.source { isHosted } else { false }
    }
  }
}
