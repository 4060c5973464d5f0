import FerryProtocol
import Foundation

/// The reason why content could not be kept or read.
package enum BlobError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The disk, or the user's share of it, is full. Nothing of the content was kept.
  case diskFull(path: String)
  /// The content does not match the hash.
  case mismatch(expected: ContentHash, found: ContentHash)
  /// An upload goes on at another place than the start of this part; `offset` is this place.
  case wrongOffset(Int64)
  /// Unfinished uploads have `used` bytes, and this one of `total` is more than the rest of the
  /// quota.
  case overQuota(used: Int64, total: Int64, quota: Int64)
  /// As many uploads as may be unfinished were begun.
  case tooManyUploads(limit: Int)
  /// The file changed while it was read.
  case changed(path: String)
  /// There is a folder, a pipe or something else where a file should be.
  case notAFile(path: String)
  /// Another caller sends the same upload at this moment.
  case busy
  /// The content is not where it should be, or has another size.
  case missing(place: String)
  /// The store elsewhere cannot be reached, or refused.
  case remote(place: String, reason: String)
  /// The caller ended it.
  case cancelled
  /// The system refused; `code` is an errno.
  case system(path: String, code: Int32)

  /// Creates the error of an errno.
  package init(_ path: String, code: Int32) {
    switch code {
    case ENOSPC, EDQUOT: self = .diskFull(path: path)
    case EISDIR: self = .notAFile(path: path)
    default: self = .system(path: path, code: code)
    }
  }

  package var description: String {
    switch self {
    case .diskFull(let path): "\(path): the disk is full"
    case .mismatch(let expected, let found):
      "the content has the SHA-256 \(found), not \(expected)"
    case .wrongOffset(let offset): "the upload continues at byte \(offset)"
    case .overQuota(let used, let total, let quota):
      "unfinished uploads of the space have \(used) bytes, this upload has \(total), and their "
        + "limit is \(quota): finish the others, wait until they expire (a week after their last "
        + "part), or start the server with a larger --upload-quota"
    case .tooManyUploads(let limit):
      "the space has \(limit) unfinished uploads, which is their limit: finish some, or wait until "
        + "they expire (a week after their last part)"
    case .changed(let path): "\(path) changed during the read"
    case .notAFile(let path): "\(path) is not a regular file"
    case .busy: "another request sends this content at this moment"
    case .missing(let place): "\(place): the content is missing or damaged"
    case .remote(let place, let reason): "\(place): \(reason)"
    case .cancelled: "interrupted"
    case .system(let path, let code): "\(path): \(String(cString: strerror(code)))"
    }
  }
}
