//! Writes convolutional networks of the sizes that people load, with seeded weights, as models of a folder each:
//! `cargo run -p isovec-test-models --example networks FOLDER`. Benchmarks in a page read them.

use std::path::PathBuf;

use isovec_engine::description::Dim;
use isovec_test_models::convolutions::{Net, efficientnet_b0, mobilenet_v2, resnet_50};

/// As torchvision makes pictures ready for them, of 224 x 224 pixels already.
const PREPROCESSOR: &str = r#"{
  "image_processor_type": "ViTImageProcessor",
  "do_resize": false,
  "do_center_crop": true,
  "crop_size": {"height": 224, "width": 224},
  "do_normalize": true,
  "image_mean": [0.485, 0.456, 0.406],
  "image_std": [0.229, 0.224, 0.225]
}
"#;

/// A network and the name of its logits.
type Make = fn() -> (Net, String);

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or_else(|| std::io::Error::other("name a folder to write into"))?;
    let networks: [(&str, Make); 3] = [
        ("mobilenet-v2", mobilenet_v2),
        ("efficientnet-b0", efficientnet_b0),
        ("resnet-50", resnet_50),
    ];
    for (name, network) in networks {
        let (mut net, logits) = network();
        let dims = vec![Dim::Symbolic("batch".into()), Dim::Fixed(1000)];
        let file = net.file(&[(&logits, dims)]);
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("preprocessor_config.json"), PREPROCESSOR)?;
        std::fs::write(folder.join("config.json"), "{}\n")?;
        std::fs::write(folder.join("model.onnx"), &file)?;
        println!("{} bytes in {}", file.len(), folder.display());
    }
    Ok(())
}
