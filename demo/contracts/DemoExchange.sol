// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import "./DemoPair.sol";

/// Factory and router of pairs in one contract, with the functions of Uniswap v2 that Request's ERC20SwapToPay and the routes need.
contract DemoExchange {
    uint256 private constant BPS = 10_000;
    uint256 private constant FEE_BPS = 30;

    mapping(address => mapping(address => address)) public getPair;

    event PairCreated(address indexed token0, address indexed token1, address pair);

    /// The router's factory is this contract too.
    function factory() external view returns (address) {
        return address(this);
    }

    function createPair(address a, address b) external returns (address pair) {
        (address token0, address token1) = a < b ? (a, b) : (b, a);
        require(token0 != token1 && getPair[token0][token1] == address(0), "no two such pairs");
        pair = address(new DemoPair{salt: keccak256(abi.encodePacked(token0, token1))}());
        DemoPair(pair).begin(token0, token1);
        getPair[token0][token1] = pair;
        getPair[token1][token0] = pair;
        emit PairCreated(token0, token1, pair);
    }

    /// The input of each step of `path` that gives `amountOut` at its end.
    function getAmountsIn(uint256 amountOut, address[] memory path) public view returns (uint256[] memory amounts) {
        require(path.length >= 2, "a path has two tokens at least");
        amounts = new uint256[](path.length);
        amounts[path.length - 1] = amountOut;
        for (uint256 i = path.length - 1; i > 0; i--) {
            (uint256 ofIn, uint256 ofOut) = _reserves(path[i - 1], path[i]);
            require(amounts[i] < ofOut, "the pair holds too little");
            amounts[i - 1] = (ofIn * amounts[i] * BPS) / ((ofOut - amounts[i]) * (BPS - FEE_BPS)) + 1;
        }
    }

    /// Pulls the needed input from the caller, at most `amountInMax`.
    function swapTokensForExactTokens(
        uint256 amountOut,
        uint256 amountInMax,
        address[] calldata path,
        address to,
        uint256 deadline
    ) external returns (uint256[] memory amounts) {
        require(deadline >= block.timestamp, "too late");
        amounts = getAmountsIn(amountOut, path);
        require(amounts[0] <= amountInMax, "it takes more than it may");
        address first = getPair[path[0]][path[1]];
        AnyToken.pull(path[0], msg.sender, first, amounts[0]);
        for (uint256 i = 0; i + 1 < path.length; i++) {
            address next = i + 2 < path.length ? getPair[path[i + 1]][path[i + 2]] : to;
            (uint256 out0, uint256 out1) = path[i] < path[i + 1] ? (uint256(0), amounts[i + 1]) : (amounts[i + 1], 0);
            DemoPair(getPair[path[i]][path[i + 1]]).swap(out0, out1, next);
        }
    }

    function _reserves(address tokenIn, address tokenOut) private view returns (uint256, uint256) {
        address pair = getPair[tokenIn][tokenOut];
        require(pair != address(0), "there is no such pair");
        (uint112 reserve0, uint112 reserve1,) = DemoPair(pair).getReserves();
        return tokenIn < tokenOut ? (reserve0, reserve1) : (reserve1, reserve0);
    }
}
