// Courses for offline use, composed by the app itself: ferry-courses FOLDER add|fetch|list
import Foundation

let usage = """
  usage: ferry-courses FOLDER add NAME TITLE FILM=ADDRESS...   composes a course, and fetches it
         ferry-courses FOLDER fetch                            continues unfinished courses
         ferry-courses FOLDER list                             lists all courses
  """
let arguments = Array(CommandLine.arguments.dropFirst())
let films = arguments.dropFirst(4).map { $0.split(separator: "=", maxSplits: 1).map(String.init) }
switch (arguments.dropFirst().first, arguments.count) {
case ("add", 5...) where films.allSatisfy({ $0.count == 2 }): break
case ("fetch", 2), ("list", 2): break
default:
  print(usage)
  exit(64)
}
do {
  let shelf = try await Shelf.open(arguments[0], shows: arguments[1] != "list")
  switch arguments[1] {
  case "add":
    try await shelf.add(
      arguments[2], title: arguments[3], films: films.map { (path: $0[0], url: $0[1]) })
    try await shelf.fetch()
  case "fetch": try await shelf.fetch()
  default: try await shelf.list()
  }
  await shelf.close()
} catch {
  print("ferry-courses: \(error)")
  exit(1)
}
