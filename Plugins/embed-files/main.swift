import Foundation

// embed-files OUTPUT PATH...: writes a Swift file with the text of the given files and of the files in given folders, and
// with pictures in base64. Names are in lower case and without hyphens: `common-passwords.txt` becomes
// `Embedded.commonpasswords`.
let pictures = ["jpg"]
let paths = CommandLine.arguments.dropFirst(2)
var swift = "enum Embedded {\n"
for path in paths {
  let url = URL(filePath: path)
  let name = url.deletingPathExtension().lastPathComponent.lowercased().replacing("-", with: "")
  let files =
    url.hasDirectoryPath || (try? url.resourceValues(forKeys: [.isDirectoryKey]).isDirectory) == true
    ? try FileManager.default.contentsOfDirectory(at: url, includingPropertiesForKeys: nil)
      // Ignores files that editors and systems leave in the folder.
      .filter { (["sql", "json"] + pictures).contains($0.pathExtension) && !$0.lastPathComponent.hasPrefix(".") }
    : [url]
  swift += "  static let \(name): [String: String] = [\n"
  for file in files.sorted(by: { $0.lastPathComponent < $1.lastPathComponent }) {
    let text =
      pictures.contains(file.pathExtension)
      ? try Data(contentsOf: file).base64EncodedString() : try String(contentsOf: file, encoding: .utf8)
    swift += "    \"\(file.lastPathComponent)\": ####\"\"\"\n\(text)\n\"\"\"####,\n"
  }
  swift += "  ]\n"
}
swift += "}\n"
try swift.write(toFile: CommandLine.arguments[1], atomically: true, encoding: .utf8)
